"""Text in the bytes of a file: unpacked where it is gzip, decoded as UTF-8 or UTF-16. Bounded; errors name the line."""

from __future__ import annotations

import codecs
import zlib

from clusterctl.fleet.errors import UsageError

MAX_BYTES = 256 * 1024 * 1024
"""Unpacked. A fabric of 20,000 ports prints 4 MB."""
_HEAD, _LEAST = 400, 8
_GZIP = b"\x1f\x8b"
_WITH_HEADER = 31  # window bits of zlib: 15, and 16 for a gzip header


def text_in(data: bytes, file: str, *, limit: int = MAX_BYTES, fallback: str = "") -> str:
    """Return the text, gzipped or not, without a byte order mark. Raises UsageError with file and line.

    `fallback` is the encoding of text that is neither UTF-8 nor UTF-16; without it such text is an error.
    """
    if data.startswith(_GZIP):
        data = unpacked(data, file, limit)
    wide = _utf16(data)
    if wide:
        return data.decode(wide, "replace").removeprefix("\ufeff")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if fallback:
            return data.decode(fallback, "replace")
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise UsageError(message, where=f"{file}:{line}", remedy="save it as UTF-8 text") from error


def _utf16(data: bytes) -> str:
    """Return the UTF-16 encoding that a byte order mark names, or that most even or odd bytes being zero shows."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    head = data[:_HEAD]
    if len(head) < _LEAST:
        return ""
    if head[1::2].count(0) * 2 > len(head[1::2]) and not head[0::2].count(0):
        return "utf-16-le"
    return "utf-16-be" if head[0::2].count(0) * 2 > len(head[0::2]) and not head[1::2].count(0) else ""


def unpacked(data: bytes, file: str, limit: int) -> bytes:
    """Return the data of all members, one after another. Raises UsageError where it is damaged or too large."""
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
