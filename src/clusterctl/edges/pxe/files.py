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
PER_HOST = 2
"""Images sent to one address at a time. An installer needs one; a broken connection may hold another for a while."""


class Downloads:
    """Limits the number of images sent at once, and with it the load on the controller's disk and network.

    One address gets a few of them only: it cannot take the places of all others.
    """

    def __init__(self, most: int, per_host: int = PER_HOST) -> None:
        self._most = most
        self._per_host = per_host
        self._running: Counter[str] = Counter()
        self._lock = Lock()

    def begin(self, host: str) -> bool:
        """Return whether another download of this address may begin; if so, the caller calls `end` after it."""
        with self._lock:
            if self._running.total() >= self._most or self._running[host] >= self._per_host:
                return False
            self._running[host] += 1
            return True

    def end(self, host: str) -> None:
        with self._lock:
            self._running[host] -= 1
            self._running += Counter()  # forgets addresses without a download


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


def answer(folder: Path, path: str, downloads: Downloads, host: str) -> Response:
    """Return the file; 404; or 503 with Retry-After when too many images are sent."""
    found = locate(folder, path)
    if found is None:
        return PlainTextResponse("there is no such file\n", 404)
    file, status = found
    if file.relative_to(folder.resolve()).parts[0] != IMAGES:
        return _File(file, stat_result=status, media_type="application/octet-stream")
    if not downloads.begin(host):
        busy = {"Retry-After": str(RETRY_AFTER_S)}
        return PlainTextResponse("too many images are being sent: try again\n", 503, headers=busy)
    return _Counted(file, status, downloads, host)


class _File(FileResponse):
    chunk_size = 1 << 20


class _Counted(_File):
    """Ends its download when the file is sent, or when the connection has ended."""

    def __init__(self, file: Path, status: os.stat_result, downloads: Downloads, host: str) -> None:
        super().__init__(file, stat_result=status, media_type="application/octet-stream")
        self._downloads = downloads
        self._host = host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._downloads.end(self._host)
