"""The boot folder over HTTP: its regular files, whole or in ranges, and a limited number of images at once."""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path
from threading import Lock

from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

RETRY_AFTER_S = 10
IMAGES = "images"
ISO = ".iso"
PER_TOKEN = 2
"""Images sent to one attempt at a time. An installer needs one; a broken connection may hold another for a while."""


class Downloads:
    """Limits the number of images sent at once, and with it the load on the controller's disk and network.

    One attempt gets a few of them only: it cannot take the places of all others, by as many addresses as it may ask.
    """

    def __init__(self, most: int, per_token: int = PER_TOKEN) -> None:
        self._most = most
        self._per_token = per_token
        self._running: Counter[str] = Counter()
        self._lock = Lock()

    def begin(self, token: str) -> bool:
        """Return whether another download with this token may begin; if so, the caller calls `end` after it."""
        with self._lock:
            if self._running.total() >= self._most or self._running[token] >= self._per_token:
                return False
            self._running[token] += 1
            return True

    def end(self, token: str) -> None:
        with self._lock:
            self._running[token] -= 1
            self._running += Counter()  # forgets tokens without a download


def locate(folder: Path, path: str) -> tuple[Path, os.stat_result] | None:
    """Return the regular file of that name in the folder, links followed; None where there is none inside it.

    A name that is not in its simplest form (`//`, `/./`, `..`) is none: one file has one name, and one limit.
    """
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        return None
    try:
        root = folder.resolve(strict=True)
        file = (root / path).resolve(strict=True)
        if not file.is_relative_to(root):
            return None
        found = file.stat()
    except OSError:
        return None
    return (file, found) if stat.S_ISREG(found.st_mode) else None


def answer(folder: Path, path: str, downloads: Downloads, token: str = "") -> Response:
    """Return the file; 404; or 503 with Retry-After when too many images are sent.

    `token` is a running attempt's. Without one images are no files: any machine of the network could take all places.
    """
    found = locate(folder, path)
    image = found is not None and _is_image(found[0], folder)
    if found is None or (image and not token):
        return PlainTextResponse("there is no such file\n", 404)
    file, status = found
    if not image:
        return _File(file, stat_result=status, media_type="application/octet-stream")
    if not downloads.begin(token):
        busy = {"Retry-After": str(RETRY_AFTER_S)}
        return PlainTextResponse("too many images are being sent: try again\n", 503, headers=busy)
    return _Counted(file, status, downloads, token)


def _is_image(file: Path, folder: Path) -> bool:
    """Return whether the file is gigabytes: of the folder of images, or an installer's ISO."""
    return file.relative_to(folder.resolve()).parts[0] == IMAGES or file.suffix.lower() == ISO


class _File(FileResponse):
    chunk_size = 1 << 20


class _Counted(_File):
    """Ends its download when the file is sent, or when the connection has ended."""

    def __init__(self, file: Path, status: os.stat_result, downloads: Downloads, token: str) -> None:
        super().__init__(file, stat_result=status, media_type="application/octet-stream")
        self._downloads = downloads
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._downloads.end(self._token)
