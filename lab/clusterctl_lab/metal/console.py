"""A virtual machine's serial console: kept in a file, and read for what its firmware reports.

The words are those of OVMF 2022.11 (edk2), which lays its output on the serial port too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from clusterctl_lab.boot import BootTarget

LIMIT = 8 * 1024 * 1024
"""Bytes that are kept of one boot."""
_STARTS = re.compile(rb'BdsDxe: starting Boot[0-9A-F]{4} "UEFI (PXE|HTTP|.{4})')
_SEEKS = re.compile(rb"BdsDxe: |>>Start (?:PXE|HTTP)")
_TAIL = 256
"""Bytes that a sign may be split over."""


class FirmwareReader:
    """Read the console piece by piece. After a drive's loader has started, no more output is the firmware's."""

    def __init__(self, left_post: Callable[[], None], started: Callable[[BootTarget], None]) -> None:
        self._left_post = left_post
        self._started = started
        self._posting = True
        self._listens = True
        self._unread = b""

    def feed(self, piece: bytes) -> None:
        if not self._listens:
            return
        text = self._unread + piece
        if self._posting and _SEEKS.search(text):
            self._posting = False
            self._left_post()
        last = 0
        for found in _STARTS.finditer(text):
            last = found.end()
            target = BootTarget.PXE if found[1] in (b"PXE", b"HTTP") else BootTarget.HDD
            self._listens = target is not BootTarget.HDD
            self._started(target)
        self._unread = text[max(last, len(text) - _TAIL) :]


class Console:
    """Listen on `socket` for the machine, and add its output to `log`."""

    def __init__(self, socket: Path, log: Path, reader: FirmwareReader) -> None:
        self._socket = socket
        self._log = log
        self._reader = reader
        self._server: asyncio.Server | None = None

    def note(self, words: str) -> None:
        """Write a line of the lab's own into the log."""
        with self._log.open("ab") as log:
            log.write(f"\n--- {words} ---\n".encode())

    async def open(self) -> None:
        """Listen: the machine connects as it starts."""
        self._socket.unlink(missing_ok=True)
        self._server = await asyncio.start_unix_server(self._receive, self._socket)
        self._socket.chmod(0o600)

    async def close(self) -> None:
        """Wait for the machine's end: all its output is in the log then."""
        if self._server is not None:
            self._server.close()
        self._socket.unlink(missing_ok=True)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept = 0
        try:
            with self._log.open("ab", buffering=0) as log:
                while piece := await reader.read(65536):
                    log.write(piece[: max(0, LIMIT - kept)])
                    kept += len(piece)
                    self._reader.feed(piece)
        except ConnectionError:
            return  # its process was killed
        finally:
            writer.close()
