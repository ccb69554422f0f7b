"""Files that an operator names, read and written, and text without secrets.

Every command imports this module: what only some need is imported inside the functions, so that start-up stays fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO, cast

from clusterctl.edges.redaction import KNOWN
from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.fleet.peer_text import visible

if TYPE_CHECKING:
    from pathlib import Path

MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 64 * 1024
_GZIP = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 20


def redacted(text: str) -> str:
    """Return the text without any secret that this process has read."""
    return KNOWN(text)


def content(file: Path) -> bytes:
    """Return the bytes of a file or pipe. Raises `UsageError` where it cannot be read, or is too large."""
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


def lines_in(file: Path, *, errors: str = "strict") -> Iterator[str]:
    """Return the lines of a large file, gzipped or not, without their ends.

    `errors`: what becomes of bytes that are not UTF-8, as in `bytes.decode`. Raises `UsageError` with file and line
    where it holds no text or cannot be read.
    """
    import gzip
    import zlib

    number = 0
    try:
        with file.open("rb") as raw:
            packed = raw.peek(len(_GZIP)).startswith(_GZIP)
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
            for line in _split(stream, file):
                number += 1
                yield line.decode(errors=errors)
    except UnicodeDecodeError as error:
        message = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise UsageError(message, where=f"{file}:{number}", remedy="give the text that the tool printed") from error
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot be read: {error}", where=str(file), remedy="give a readable, whole file") from error


def _split(stream: BinaryIO, file: Path) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(_CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        if len(rest) > MAX_LINE_BYTES:
            remedy = "give the text that the tool printed"
            raise UsageError(f"a line is longer than {MAX_LINE_BYTES >> 10} KiB", where=str(file), remedy=remedy)
    if rest:
        yield rest


@contextmanager
def as_usage() -> Iterator[None]:
    """Turn `ParseError` into `UsageError`: the text comes from the operator's file, not from an outside system."""
    try:
        yield
    except ParseError as error:
        raise UsageError(error.message, where=error.where, remedy=error.remedy) from error


def write_document(file: Path, text: str, *, option: str, force: bool) -> None:
    """Write a file whole or not at all. Raises `UsageError` where it exists, unless `force` replaces it."""
    from clusterctl.edges.disk import disk_explained, write_whole

    if file.exists() and not force:
        remedy = f"choose another {option}, or replace it with --force"
        raise UsageError("the file exists already", where=str(file), remedy=remedy)
    if not file.parent.is_dir():
        remedy = f"make the folder {file.parent}, or choose another {option}"
        raise UsageError("its folder does not exist", where=str(file), remedy=remedy)
    with disk_explained("the file cannot be written", file):
        write_whole(file, visible(text).encode(), mode=0o644, over=True)
