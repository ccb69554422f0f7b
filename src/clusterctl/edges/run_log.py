"""Log files of runs: one file per run, readable by its owner alone, bounded in size and number."""

from __future__ import annotations

import logging.handlers
import os
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

FILE_BYTES = 8_000_000
"""A run's log begins again at this size; the part before it is kept as `RUN.log.1`."""
RUNS = 50
"""Logs of older runs are removed."""
TAIL_BYTES = 128 << 10


class RunLogHandler(logging.handlers.RotatingFileHandler):
    """Writes to a file with mode 0600. A disk that is full or read-only ends no run: its lines are left out."""

    def __init__(self, file: Path) -> None:
        super().__init__(file, maxBytes=FILE_BYTES, backupCount=1, encoding="utf-8", errors="replace", delay=True)

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        return os.fdopen(os.open(self.baseFilename, flags, 0o600), "a", encoding=self.encoding, errors=self.errors)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 — logging's name
        """Leave the record out."""

    def close(self) -> None:
        """Close the file, without the lines that the disk has not taken."""
        with suppress(OSError, ValueError):
            super().close()


def run_log_handler(folder: Path, run: str) -> RunLogHandler:
    """Return the handler of a run's log file; remove logs of old runs. Folder and file are made for the first line."""
    handler = RunLogHandler(log_file(folder, run))
    with suppress(OSError):  # another user's folder: that ends no run either
        for old in sorted(folder.glob("*.log"))[: 1 - RUNS]:
            for file in (old, old.with_suffix(".log.1")):
                file.unlink(missing_ok=True)
    return handler


def log_file(folder: Path, run: str) -> Path:
    """Return where the log of a run is."""
    return folder / f"{run}.log"


def last_lines(file: Path, lines: int) -> tuple[str, ...]:
    """Return the last lines of a log, of at most `TAIL_BYTES`; nothing where it is absent or cannot be read."""
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - TAIL_BYTES))
            return tuple(log.read(TAIL_BYTES).decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ()
