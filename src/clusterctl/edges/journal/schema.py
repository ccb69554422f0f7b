"""Brings the database to the version that this program knows; refuses a newer one."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, select, table
from sqlalchemy import column as sql_column

from clusterctl.edges.journal.database import Database, explained, lock_writers_out
from clusterctl.edges.journal.states import rebuild
from clusterctl.edges.journal.tables import SCHEMA_VERSION
from clusterctl.fleet.errors import UsageError

_VERSION = table("alembic_version", sql_column("version_num"))


def bring_up(database: Database) -> None:
    """Create or migrate the tables; nothing happens, and Alembic is not even loaded, when they are current."""
    with explained(database.where):
        with database.engine.execution_options(reading=True).connect() as connection:
            found = _found(connection)
        if found == SCHEMA_VERSION:
            return
        if found is not None and found > SCHEMA_VERSION:
            raise UsageError(
                f"the journal has version {found}, this clusterctl knows {SCHEMA_VERSION}",
                where=database.where,
                remedy="use the newer clusterctl that wrote it",
            )
        with database.engine.begin() as connection:
            lock_writers_out(connection)
            _migrate(connection)
            rebuild(connection)


def _found(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(select(_VERSION.c.version_num)).scalar()


def _migrate(connection: Connection) -> None:
    """All of it in the caller's transaction: an interrupted migration leaves the old version as it was."""
    from alembic import command  # noqa: PLC0415 — 150 ms that only a migration needs to pay
    from alembic.config import Config  # noqa: PLC0415 — likewise

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
