"""A cache of what metrics need of each node, so that a new process need not read all states."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

FILE = "figures.db"
COLUMNS = ("version", "expected", "head", "bounds", "figures", "proven", "worst", "parts", "zpools")
Row = tuple[str, ...]
"""Of one node, in the order of `COLUMNS`. `version`: of the stored state that the others were made of."""
_LOCK_S = 5.0


@dataclass(frozen=True, slots=True)
class FigureRecord:
    """The cache of one site. It raises nothing: a file that cannot be read is empty, one that cannot be written stays.

    version  of the program; rows of another one are not read
    """

    folder: Path
    version: str

    def read(self) -> tuple[Mapping[str, Row], str]:
        """Return the rows by node, and the text of the steps."""
        with self._guarded(), self._opened() as base:
            kept = base.execute("SELECT steps FROM about WHERE version = ?", (self.version,)).fetchone()
            if kept is not None:
                rows = base.execute(f"SELECT node, {', '.join(COLUMNS)} FROM node")  # noqa: S608 — our own names
                return {row[0]: row[1:] for row in rows}, kept[0]
        return {}, ""

    def write(self, rows: Mapping[str, Row], gone: Collection[str], steps: str) -> None:
        """Keep these rows and the steps; forget the nodes that are gone."""
        with self._guarded(), self._opened() as base:
            base.execute("BEGIN IMMEDIATE")
            if base.execute("SELECT 1 FROM about WHERE version = ?", (self.version,)).fetchone() is None:
                base.execute("DELETE FROM node")
            base.execute("DELETE FROM about")
            base.execute("INSERT INTO about VALUES (?, ?)", (self.version, steps))
            base.executemany("DELETE FROM node WHERE node = ?", ((node,) for node in gone))
            marks = ", ".join("?" * (len(COLUMNS) + 1))
            values = ((node, *row) for node, row in rows.items())
            base.executemany(f"INSERT OR REPLACE INTO node VALUES ({marks})", values)  # noqa: S608 — as above
            base.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        file = self.folder / FILE
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(file, timeout=_LOCK_S, isolation_level=None)) as base:
            base.execute("PRAGMA journal_mode=WAL")
            base.execute("PRAGMA synchronous=NORMAL")
            columns = ", ".join(f"{name} TEXT NOT NULL" for name in COLUMNS)
            base.execute(f"CREATE TABLE IF NOT EXISTS node (node TEXT PRIMARY KEY, {columns})")
            base.execute("CREATE TABLE IF NOT EXISTS about (version TEXT NOT NULL, steps TEXT NOT NULL)")
            yield base

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Log what fails; a damaged file is removed, since all of it can be made again."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            log.warning("the record of figures is not used: %s: %s", self.folder / FILE, error)
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                for suffix in ("", "-wal", "-shm"):
                    with suppress(OSError):
                        (self.folder / f"{FILE}{suffix}").unlink(missing_ok=True)
