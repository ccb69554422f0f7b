"""Steps in TensorBoard's event files: TFRecord frames around protobuf messages `Event`, of which a few fields are read.

A frame is the length (8 bytes), its masked CRC-32C (4), the message, and the message's masked CRC-32C (4), all little
endian. Sources: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto (wall_time 1, step 2,
summary 5). A user writes the file, so each length is bounded before it is believed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

LONGEST = 1 << 30
"""Bytes of one record: an image or a graph may be large."""
_READ = 1 << 20
"""Records above this are no scalars: they are passed over."""
_HEAD, _FOOT = 12, 4
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class EventStep:
    """A step with a summary; `at`: when it was written, in seconds since 1970."""

    step: int
    at: float


def read_events(content: bytes) -> tuple[tuple[EventStep, ...], int]:
    """Return the steps of the whole records at the beginning of `content`, and the bytes up to the next record.

    That is more than `content` has where a record that is no scalar is passed over. Raises `ParseError` where the
    bytes are no frame.
    """
    found: list[EventStep] = []
    at = 0
    while at + _HEAD <= len(content):
        length, crc = struct.unpack_from("<QI", content, at)
        if length > LONGEST or _masked_crc(content[at : at + 8]) != crc:
            raise ParseError("not a record of TensorBoard's event files", where=f"byte {at}")
        end = at + _HEAD + length + _FOOT
        if end > len(content) and length <= _READ:
            break
        if length <= _READ and (step := _step(content[at + _HEAD : at + _HEAD + length])) is not None:
            found.append(step)
        at = end
    return tuple(found), at


def _step(message: bytes) -> EventStep | None:
    """Return the step of a message with a summary; None for others, and for what cannot be read."""
    step, wall, summary = 0, 0.0, False
    try:
        for field, kind, value in _fields(message):
            if field == _STEP and kind == _VARINT and isinstance(value, int):
                step = value
            elif field == _WALL_TIME and kind == _FIXED64 and isinstance(value, bytes):
                (wall,) = struct.unpack("<d", value)
            elif field == _SUMMARY and kind == _BYTES:
                summary = True
    except (IndexError, struct.error):
        return None
    return EventStep(step, wall) if summary and 0 <= step < 10**12 and 0.0 <= wall < 1e11 else None


def _fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and value of each field. Raises `IndexError` where the message ends too early."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, kind, value
            continue
        if kind not in (_FIXED64, _BYTES, _FIXED32):
            raise IndexError(kind)
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
        if size < 0:
            size, at = _varint(message, at)
        if at + size > len(message):
            raise IndexError(at)
        yield key >> 3, kind, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number of at most ten bytes, and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError(at)


def _table() -> tuple[int, ...]:
    rows = []
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        rows.append(crc)
    return tuple(rows)


_CRC = _table()
"""CRC-32C (Castagnoli), RFC 3720 appendix B.4."""


def _masked_crc(data: bytes) -> int:
    """Return the CRC of the eight bytes of a length, as the writer masks it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
