"""The journal's SQLite file, looked at before it is opened: what is none stays as it is."""

from __future__ import annotations

import stat
from pathlib import Path

from clusterctl.edges.site.load import Site
from clusterctl.edges.site.urls import SQLITE
from clusterctl.fleet.errors import UsageError

MAGIC = b"SQLite format 3\0"
"""The first 16 bytes of a SQLite database (https://www.sqlite.org/fileformat.html); a new one is empty."""


def check_journal_file(site: Site) -> None:
    """Raise `UsageError` where the journal's file is there and no SQLite database; other engines are not looked at."""
    url = site.journal_url()
    if not url.startswith(SQLITE):
        return
    where, file = site.where("journal"), Path(url.removeprefix(SQLITE).partition("?")[0])
    try:
        mode = file.stat().st_mode
        head = _head(file) if stat.S_ISREG(mode) else b""
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", where=where, remedy="mend its path or mode"
        ) from None
    if stat.S_ISDIR(mode):
        raise UsageError(f"{file} is a directory, not a file", where=where, remedy="name a file in it: …/journal.db")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{file} is no regular file but a pipe or device", where=where, remedy="name a file")
    if head and head != MAGIC:
        remedy = "name another file; clusterctl never writes over one that is not its own"
        raise UsageError(f"{file} is no SQLite database", where=where, remedy=remedy)


def _head(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(len(MAGIC))
