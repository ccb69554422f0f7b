"""`python -m tests.edges.journal.freeze`: writes what a journal of today's version looks like, for the versions to come.

Run once for each version of the tables, before the next one is begun; its output lies in `data/` and never changes.
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from sqlalchemy import create_engine, text

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.journal.tables import SCHEMA_VERSION
from tests.edges.journal.life import StepClock, fill
from tests.edges.journal.postgres import running_server

DATA = Path(__file__).parent / "data"


def _write(engine: str, text: str) -> None:
    file = DATA / f"journal-{SCHEMA_VERSION}.{engine}.sql"
    if file.exists():
        raise SystemExit(f"{file} is there already: what was released does not change")
    file.write_text(text, encoding="utf-8")


def _live(url: str) -> None:
    """The claim that the life leaves is made an old one: its expiry lies in the past whatever the clock shows."""
    book = open_journal(url, StepClock(), Holder("r1", "alice"))
    fill(book)
    book.close()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE claim SET expires_at = 1700000000 WHERE expires_at > 0"))
    engine.dispose()


def _freeze_sqlite(folder: Path) -> None:
    _live(f"sqlite:///{folder}/journal.db")
    with closing(sqlite3.connect(folder / "journal.db")) as connection:
        _write("sqlite", "\n".join(connection.iterdump()) + "\n")


def _freeze_postgresql() -> None:
    with running_server() as server:
        url = server.url()
        _live(url)
        _write("postgresql", server.dump(url))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        _freeze_sqlite(Path(scratch))
    _freeze_postgresql()
