"""Files that a person names on the command line: read whole and bounded, or refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from clusterctl.fleet.errors import ParseError, UsageError

MAX_FILE_BYTES = 256 * 1024 * 1024
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def content(file: Path) -> bytes:
    """Its bytes as they are; a pipe is read as well. Raises UsageError where it cannot be read, or is too large."""
    try:
        with file.open("rb") as raw:
            data = raw.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise UsageError(message, where=str(file), remedy="give a readable file") from error
    if len(data) > MAX_FILE_BYTES:
        message = f"is larger than {MAX_FILE_BYTES >> 20} MiB"
        raise UsageError(message, where=str(file), remedy="give the file that was asked for, and no more")
    return data


@contextmanager
def as_usage() -> Iterator[None]:
    """Recorded text that is not understood is the person's file, not the fabric's answer."""
    try:
        yield
    except ParseError as error:
        raise UsageError(error.message, where=error.where, remedy=error.remedy) from error
