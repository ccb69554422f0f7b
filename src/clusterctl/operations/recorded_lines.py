"""Long files that a person names on the command line: read line by line, gzipped or not, so that they may be large."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from clusterctl.fleet.errors import UsageError

_GZIP = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 64 * 1024


def lines_in(file: Path) -> Iterator[str]:
    """Its lines, without their ends. Raises UsageError with file and line where it is no text, or cannot be read."""
    number = 0
    try:
        with file.open("rb") as raw:
            packed = raw.peek(len(_GZIP)).startswith(_GZIP)
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
            for line in _split(stream, file):
                number += 1
                yield line.decode()
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
