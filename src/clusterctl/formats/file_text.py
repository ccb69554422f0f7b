"""What stands in a file's bytes: unpacked where it is gzip, decoded where it is text. Bounded, refused in words."""

from __future__ import annotations

import zlib

from clusterctl.fleet.errors import UsageError

MAX_BYTES = 256 * 1024 * 1024
"""Unpacked. A fabric of 20,000 ports prints 4 MB."""
_GZIP = b"\x1f\x8b"
_WITH_HEADER = 31  # window bits of zlib: 15, and 16 for a gzip header


def text_in(data: bytes, file: str, *, limit: int = MAX_BYTES) -> str:
    """The text, gzipped or not, without a byte order mark. Raises UsageError with file and line."""
    if data.startswith(_GZIP):
        data = _unpacked(data, file, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise UsageError(message, where=f"{file}:{line}", remedy="save it as UTF-8 text") from error


def _unpacked(data: bytes, file: str, limit: int) -> bytes:
    """Of all members, one after another."""
    parts: list[bytes] = []
    while data:
        unpacker = zlib.decompressobj(_WITH_HEADER)
        try:
            part = unpacker.decompress(data, limit + 1)
        except zlib.error as error:
            message = f"is no whole gzip file: {error}"
            raise UsageError(message, where=file, remedy="give a whole file") from None
        parts.append(part)
        limit -= len(part)
        if limit < 0:
            raise UsageError("is too large when unpacked", where=file, remedy="give the plan and no more")
        if not unpacker.eof:
            raise UsageError("is cut off: its gzip data has no end", where=file, remedy="give a whole file")
        data = unpacker.unused_data.lstrip(b"\0")
    return b"".join(parts)
