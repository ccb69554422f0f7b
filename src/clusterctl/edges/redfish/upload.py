"""A firmware image as the body of a request: read from the disk while it is sent, never held in memory as a whole."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from clusterctl.fleet.errors import EdgeError

BLOCK = 256 * 1024


@dataclass(slots=True)
class Upload:
    """A body for `requests`, sent block by block. `check` is called before each block."""

    content_type: str
    head: bytes
    file: BinaryIO
    tail: bytes
    check: Callable[[], None]
    _sent: int = 0
    _size: int = 0

    def __post_init__(self) -> None:
        self.rewind()

    def rewind(self) -> None:
        """Start from the first byte, for another try."""
        self.file.seek(0)
        self._sent, self._size = 0, os.fstat(self.file.fileno()).st_size

    def __len__(self) -> int:
        return len(self.head) + self._size + len(self.tail)

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.read(BLOCK), b"")

    def read(self, size: int = BLOCK) -> bytes:
        """Return the next part, empty at the end. Raises where the file became shorter than was announced."""
        self.check()
        block = self._next(size)
        self._sent += len(block)
        return block

    def _next(self, size: int) -> bytes:
        begin, end = len(self.head), len(self.head) + self._size
        if self._sent < begin:
            return self.head[self._sent : self._sent + size]
        if self._sent >= end:
            return self.tail[self._sent - end :][:size]
        block = self.file.read(min(size, end - self._sent))
        if not block:
            raise EdgeError("the image became shorter while it was sent", remedy="fetch the image again")
        return block


def multipart(parameters: Mapping[str, Any], name: str, file: BinaryIO, check: Callable[[], None]) -> Upload:
    """Return the parts `UpdateParameters` and `UpdateFile`, for a multipart HTTP push update (DSP0266)."""
    boundary = f"clusterctl-{secrets.token_hex(16)}"
    safe = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in name)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="UpdateParameters"\r\n'
        f"Content-Type: application/json\r\n\r\n{json.dumps(dict(parameters))}\r\n"
        f'--{boundary}\r\nContent-Disposition: form-data; name="UpdateFile"; filename="{safe}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    tail = f"\r\n--{boundary}--\r\n"
    return Upload(f"multipart/form-data; boundary={boundary}", head.encode(), file, tail.encode(), check)


def plain(file: BinaryIO, check: Callable[[], None]) -> Upload:
    """Return the image itself as the body, for `HttpPushUri`."""
    return Upload("application/octet-stream", b"", file, b"", check)
