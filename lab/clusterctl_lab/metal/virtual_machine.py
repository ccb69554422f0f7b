"""One virtual machine from power-on until its process ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.hosts.command import environment
from clusterctl_lab.hosts.running import ExitReason
from clusterctl_lab.machine import Machine
from clusterctl_lab.metal.console import Console

log = logging.getLogger(__name__)

RESET_BY_GUEST = "guest-reset"
"""Why a machine that may not reboot has ended (QAPI's ShutdownCause)."""


class Qmp:
    """One process's. `listen` runs until the process ends; commands may be sent at any time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.ended_by = ""

    def command(self, name: str, **arguments: str) -> None:
        """Send a request whose answer is not needed; a machine that is about to end does not receive it."""
        if self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")

    async def listen(self) -> None:
        """Read its events until its end; `ended_by` is the reason of its shutdown then, empty where it had none."""
        self.command("qmp_capabilities")
        if self._process.stdout is None:
            return
        async for line in self._process.stdout:
            if line.endswith(b"\n"):  # a killed one may end within a message
                self._receive(json.loads(line))

    def _receive(self, message: dict[str, Any]) -> None:
        if message.get("event") == "SHUTDOWN":
            self.ended_by = message["data"]["reason"]
        if "error" in message:
            log.error("QEMU refuses: %s", message["error"].get("desc"))


SCRIPT = Path(str(files("clusterctl_lab.metal"))) / "machine.sh"
GREETING = b'{"QMP"'


@dataclass(frozen=True, slots=True)
class Socket:
    """Where a virtual machine is plugged in: its cgroup, the switch's network namespace, and the batch of its wire;
    `errors` is the file of QEMU's own complaints.
    """

    cgroup: Path
    netns: str
    wire: Path
    errors: Path


@dataclass(frozen=True, slots=True)
class VirtualMachine:
    """A process that runs; `pulled` are the serials of drives that are out of it since it was started."""

    machine: Machine
    process: asyncio.subprocess.Process
    qmp: Qmp
    console: Console
    socket: Socket
    pulled: set[str]

    async def ended(self) -> ExitReason:
        """Wait for its end; CRASH where the virtual machine did not ask for it."""
        await self.qmp.listen()
        await self.process.wait()
        await self.console.close()
        if not self.qmp.ended_by.startswith("guest"):
            return ExitReason.CRASH
        return ExitReason.REBOOT if self.qmp.ended_by == RESET_BY_GUEST else ExitReason.POWEROFF

    def complaints(self) -> str:
        """Return the last line that QEMU printed."""
        return _tail(self.socket.errors)


async def start(lab: str, machine: Machine, argv: Sequence[str], socket: Socket, console: Console) -> VirtualMachine:
    """Returns when its processor runs; raises `EdgeError` with QEMU's own words where it does not."""
    await console.open()
    with socket.errors.open("wb") as complaints:
        process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "sh", str(SCRIPT)),
            *(str(socket.cgroup), socket.netns, str(socket.wire), *argv),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=complaints,
            env=environment(lab),
            start_new_session=True,
        )
    try:
        greeting = await process.stdout.readline() if process.stdout else b""
    except BaseException:  # cancelled: the script, its helpers and QEMU are one process group
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await console.close()
        raise
    if not greeting.startswith(GREETING):
        await process.wait()
        await console.close()
        raise EdgeError(
            f"does not start: {_tail(socket.errors)}",
            where=machine.name,
            remedy="Read the lab's log, then run `clusterctl lab down` and `clusterctl lab up`.",
        )
    pulled = {drive.serial for drive in machine.drives if not drive.on_bus}
    return VirtualMachine(machine, process, Qmp(process), console, socket, pulled)


def _tail(errors: Path) -> str:
    lines = errors.read_text(errors="replace").strip().splitlines()
    return " | ".join(lines[-3:]) or "it printed nothing"
