"""QEMU's machine protocol (QMP, docs/interop/qmp-spec): JSON, a message a line, over the process's own pipes.

Over these there is no socket to wait for, and their end is the process's.
"""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

log = logging.getLogger(__name__)

RESET_BY_GUEST = "guest-reset"
"""Why a machine that may not reboot has ended (QAPI's ShutdownCause)."""


class Qmp:
    """One process's. `listen` runs until the process ends; commands may be sent at any time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.ended_by = ""

    def command(self, name: str, **arguments: str) -> None:
        """Ask for something whose answer nobody needs; one that is about to end does not hear it."""
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")

    async def listen(self) -> None:
        """Hear what it says until its end; `ended_by` is why it shut itself down then, empty where it did not."""
        self.command("qmp_capabilities")
        if self._process.stdout is None:
            return
        async for line in self._process.stdout:
            if line.endswith(b"\n"):  # a killed one may end within a message
                self._hear(json.loads(line))

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("event") == "SHUTDOWN":
            self.ended_by = message["data"]["reason"]
        if "error" in message:
            log.error("QEMU refuses: %s", message["error"].get("desc"))
