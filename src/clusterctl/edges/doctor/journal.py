"""The journal opens and has a version that this program knows. Read only: nothing is made, nothing migrated."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from clusterctl.edges.journal.tables import SCHEMA_VERSION
from clusterctl.edges.site import Site
from clusterctl.edges.site.load import check_journal_file
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok
from clusterctl.site.urls import SQLITE

NAME = "journal"
SECONDS = 4
REMEDY = "check that the database runs, that the URL in journal is right, and that this user may log in"


def check(site: Site) -> Diagnosis:
    check_journal_file(site)
    url = site.journal_url()
    if not url.startswith(SQLITE):
        return look(url, {"connect_timeout": SECONDS})
    file = Path(url.removeprefix(SQLITE))
    if not file.exists() or not file.stat().st_size:
        return ok(NAME, f"{file} is not there yet: the first command makes it")
    # Without a log of writes beside it nobody writes: then the file is read as it lies, and no lock file is made.
    quiet = "" if file.with_name(f"{file.name}-wal").exists() else "&immutable=1"
    return look(f"{SQLITE}file:{file}?mode=ro{quiet}&uri=true", {"timeout": SECONDS})


def look(url: str, options: dict[str, int]) -> Diagnosis:
    engine = create_engine(url, connect_args=options, poolclass=NullPool)
    where = engine.url.render_as_string(hide_password=True).partition("?")[0]
    try:
        with engine.connect() as connection:
            there = inspect(connection).has_table("alembic_version")
            version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar() if there else None
    except SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or type(error).__name__).strip().splitlines()[0]
        return broken(NAME, f"{where} does not open: {cause}", REMEDY)
    finally:
        engine.dispose()
    return judge(where, version)


def judge(where: str, version: str | None) -> Diagnosis:
    if version is None:
        return ok(NAME, f"{where} opens and is empty")
    if version > SCHEMA_VERSION:
        message = f"{where} has version {version}, this clusterctl knows {SCHEMA_VERSION}"
        return broken(NAME, message, "use the newer clusterctl that wrote it")
    if version < SCHEMA_VERSION:
        return ok(NAME, f"{where} opens; the next command brings it from version {version} to {SCHEMA_VERSION}")
    return ok(NAME, f"{where} opens, version {version}")
