"""Backup, restore and compaction of a journal. A backup is a SQLite file, whichever engine the journal is on; it is
encrypted where the site has keys.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, select, text

from clusterctl.edges.disk import disk_explained
from clusterctl.edges.journal import claims, encrypted_backup, states
from clusterctl.edges.journal.database import Database, bring_up, connect
from clusterctl.edges.journal.named_evidence import digests_in
from clusterctl.edges.journal.tables import claim, event, evidence, incident_state, node_state, stream_head
from clusterctl.edges.journal.verification import BATCH, Verification, rows_of, verify_database
from clusterctl.edges.site.site_keys import SiteKeys
from clusterctl.fleet.errors import ConflictError, EnvironmentBrokenError, UsageError
from clusterctl.ports.journal import WORKERS

KEYS: Mapping[Table, str] = {
    event: "seq",
    evidence: "digest",
    node_state: "node",
    incident_state: "incident",
    stream_head: "stream",
}
"""The tables that a backup has, and their keys. Claims belong to running processes."""
SQLITE = "sqlite:///"
SQLITE_HEADER = b"SQLite format 3\0"
"""What every database file of SQLite begins with (https://sqlite.org/fileformat.html)."""


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """Open the database of a journal, with its tables, while the context lasts."""
    database = connect(url)
    try:
        bring_up(database)
        yield database
    finally:
        database.engine.dispose()


def back_up(url: str, file: Path, keys: SiteKeys | None = None) -> Verification:
    """Write the journal as of one moment to a new file; writers are not held up. Return what the file holds.

    With keys the file is encrypted, and nothing unencrypted is ever in its folder. Raise `UsageError` where the file is
    there already. A backup of a damaged journal is written and reports the damage.
    """
    if file.exists():
        raise UsageError("is there already", where=str(file), remedy="name a new file")
    if not file.parent.is_dir():
        raise UsageError("its folder does not exist", where=str(file), remedy=f"make the folder {file.parent}")
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    try:
        if keys:
            with tempfile.TemporaryDirectory(prefix="clusterctl-backup-") as folder:
                plain = Path(folder) / "journal.db"
                found = _write_copy(url, plain)
                encrypted_backup.encrypt(plain, part, keys)
        else:
            found = _write_copy(url, part)
        _sync(part)
        part.rename(file)
        _sync(file.parent)
    except OSError as error:
        raise EnvironmentBrokenError(
            f"the backup cannot be written: {error.strerror}", where=str(file), remedy="name a file that you may write"
        ) from None
    finally:
        part.unlink(missing_ok=True)
    return found


def _write_copy(url: str, file: Path) -> Verification:
    with opened(url) as source, opened(f"{SQLITE}{file}") as target:
        source.snapshot(lambda reading: target.write(lambda writing: _copy(reading, writing)))
        return verify_database(target)


def _copy(reading: Connection, writing: Connection) -> None:
    for table, key in KEYS.items():
        rows: list[dict[str, Any]] = []
        for row in rows_of(reading, table, key):
            rows.append(dict(row))
            if len(rows) == BATCH:
                writing.execute(insert(table), rows)
                rows = []
        if rows:
            writing.execute(insert(table), rows)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def backup_copy(file: Path, keys: SiteKeys | None = None) -> Iterator[tuple[Database, Verification]]:
    """Open a copy of a backup, so that the backup stays as it is. Raise `UsageError` where there is no such file or no
    key for it, and `EnvironmentBrokenError` where it is damaged.
    """
    remedy = "name a file that clusterctl journal backup has written"
    if not file.is_file():
        raise UsageError("there is no such backup", where=str(file), remedy=remedy)
    with tempfile.TemporaryDirectory(prefix="clusterctl-restore-") as folder:
        copy = Path(folder) / "journal.db"
        if encrypted_backup.is_encrypted(file):
            encrypted_backup.decrypt(file, copy, keys or SiteKeys())
        else:
            shutil.copyfile(file, copy)
        with copy.open("rb") as stream:
            if stream.read(len(SQLITE_HEADER)) != SQLITE_HEADER:
                raise UsageError("is no backup of a journal", where=str(file), remedy=remedy)
        with opened(f"{SQLITE}{copy}") as database:
            found = verify_database(database)
            if found.damages:
                raise EnvironmentBrokenError(
                    f"the backup is damaged: {found.damages[0].where}: {found.damages[0].cause}",
                    where=str(file),
                    remedy="use an older backup",
                )
            yield database, found


def restore(url: str, file: Path, keys: SiteKeys | None = None) -> tuple[Verification, Path | None]:
    """Replace the journal by a backup. Return what it holds now, and where a damaged SQLite file was moved to.

    Raise `ConflictError` where a run has claims. A readable journal is replaced in one transaction.
    """
    with backup_copy(file, keys) as (backup, _):
        if not readable(url):
            return _exchange(url, backup)
        with opened(url) as target:
            backup.snapshot(lambda reading: target.write(lambda writing: _replace(reading, writing)))
            return verify_database(target), None


def readable(url: str) -> bool:
    """Return whether the journal's tables and claims can be read, which a transaction on them needs."""
    try:
        with opened(url) as database:
            database.read(lambda connection: [connection.execute(select(table)).first() for table in (*KEYS, claim)])
            database.write(claims.live)
    except EnvironmentBrokenError:
        if not url.startswith(SQLITE):
            raise
        return False
    return True


def _exchange(url: str, backup: Database) -> tuple[Verification, Path]:
    """Put the backup in the place of a damaged SQLite file. Return what it holds, and where the damaged file is kept.

    There is a journal at any moment, the damaged one or the restored one: a run that begins meanwhile finds no empty
    one. A process that has the damaged file open keeps it, and writes to nothing else.
    """
    file = Path(url.removeprefix(SQLITE))
    part = file.with_name(f".{file.name}.restored")
    kept = file.with_name(f"{file.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
    with disk_explained("cannot be replaced", file):
        part.unlink(missing_ok=True)
        with opened(f"{SQLITE}{part}") as target:
            backup.snapshot(lambda reading: target.write(lambda writing: _replace(reading, writing)))
            found = verify_database(target)
        _sync(part)
        kept.hardlink_to(file)
        for suffix in ("-wal", "-shm"):  # they belong to the damaged file alone
            log = file.with_name(file.name + suffix)
            if log.exists():
                log.rename(kept.with_name(kept.name + suffix))
        part.replace(file)
        _sync(file.parent)
    return found, kept


def _replace(reading: Connection, writing: Connection) -> None:
    require_idle(writing)
    for table in KEYS:
        writing.execute(delete(table))
    _copy(reading, writing)
    if writing.dialect.name == "postgresql":
        sequence = func.pg_get_serial_sequence("event", "seq")
        last = writing.execute(select(func.max(event.c.seq))).scalar() or 1
        writing.execute(select(func.setval(sequence, func.greatest(func.nextval(sequence), last))))


def require_idle(connection: Connection, but: str = "") -> None:
    """Raise `ConflictError` where a run has claims. but: claims on subjects that begin so do not count."""
    owners = claims.live(connection, but)
    if owners:
        remedy = "let that run end, or stop it; then run the command again"
        raise ConflictError(f"nodes are {owners[0]}", where="the journal", remedy=remedy)


@dataclass(frozen=True, slots=True)
class Surplus:
    """Evidence that no event names."""

    digests: tuple[str, ...]
    bytes: int


def surplus(connection: Connection) -> Surplus:
    """Return the evidence that no event names: left by runs that were killed before they recorded a report."""
    named: set[str] = set()
    for row in rows_of(connection, event, "seq"):
        named.update(digests_in(row["evidence"], row["data"]))
    sizes = connection.execute(select(evidence.c.digest, func.length(evidence.c.content))).all()
    unnamed = [(digest, size) for digest, size in sizes if digest not in named]
    return Surplus(tuple(digest for digest, _ in unnamed), sum(size for _, size in unnamed))


def compact(url: str) -> Surplus:
    """Compute the node states again, remove evidence that no event names, and give free pages back to the disk.

    Raise `ConflictError` where a run has claims.
    """

    def work(connection: Connection) -> Surplus:
        require_idle(connection, WORKERS)
        found = surplus(connection)
        for start in range(0, len(found.digests), BATCH):
            batch = found.digests[start : start + BATCH]
            connection.execute(delete(evidence).where(evidence.c.digest.in_(batch)))
        states.rebuild(connection)
        return found

    with opened(url) as database:
        removed = database.write(work)
        _vacuum(database)
    return removed


def _vacuum(database: Database) -> None:
    with database.engine.execution_options(isolation_level="AUTOCOMMIT", reading=True).connect() as connection:
        statements: Iterable[str] = ("VACUUM",)
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("COMMIT")  # of the transaction that `reading` begins
            statements = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
        for statement in statements:
            connection.execute(text(statement))
