"""The lab's truth while it runs: which machines exist, which have power, and who is told when that changes.

Lives in the lab daemon's asyncio loop; the faces (BMCs, MAAS, hosts, fabric) read it and subscribe to it. The BMC face
switches power; MAAS switches it through the BMC, as the real one does.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from clusterctl.fleet.errors import EdgeError
from clusterctl.lab.machine import Layout, Machine

log = logging.getLogger(__name__)

SEL_CAPACITY = 1024


class BootTarget(enum.Enum):
    """What a machine boots from. NONE: it follows its boot order (network first, as MAAS expects, then disk)."""

    NONE = "None"
    PXE = "Pxe"
    HDD = "Hdd"


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds of simulated time that physical things take."""

    power_off: float = 0.2
    post: float = 1.0
    commission: float = 1.0
    write_os: float = 2.0
    netboot_timeout: float = 12.0


class NetbootAnswer(enum.Enum):
    """What the provisioning server tells a machine that asks over the network."""

    LOCAL_DISK = "local"
    EPHEMERAL = "ephemeral"
    NOTHING = "nothing"


class Provisioner(Protocol):
    """What answers a network boot: the lab's MAAS."""

    async def netboot(self, machine: Machine) -> NetbootAnswer:
        """Called when the machine's firmware asks. EPHEMERAL: the provisioner goes on by itself in the background and
        powers the machine off or reboots it through its BMC when done.
        """
        ...


class HostFace(Protocol):
    """Runs the installed OS of a machine."""

    def installed(self, machine: Machine) -> bool: ...

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        """Write the OS and apply its cloud-init user-data; the machine is not running afterwards."""
        ...

    async def boot(self, machine: Machine) -> None:
        """Start the OS; returns when init runs."""
        ...

    async def halt(self, machine: Machine) -> None:
        """Power is gone: everything of it dies at once."""
        ...


PowerListener = Callable[[Machine, bool], Awaitable[None]]


@dataclass(slots=True)
class MachineState:
    """What changes about a machine without anyone touching its parts.

    sel       (UTC time, severity, message) of each entry
    installs  how often an OS was written to it, whole or not
    """

    power: bool = False
    boot_target: BootTarget = BootTarget.NONE
    boot_once: bool = False
    sel: list[tuple[str, str, str]] = field(default_factory=list)
    boots: int = 0
    installs: int = 0
    running: bool = False
    boot_task: asyncio.Task[None] | None = None


class World:
    """All machines of one lab and their power."""

    def __init__(self, layout: Layout, machines: Mapping[str, Machine], delays: Delays) -> None:
        self.layout = layout
        self.delays = delays
        self.machines = dict(machines)
        self.states = {name: MachineState() for name in machines}
        self.provisioner: Provisioner | None = None
        self.hosts: HostFace | None = None
        self._listeners: list[PowerListener] = []
        self._changed: list[Callable[[Machine], Awaitable[None]]] = []

    def on_power(self, listener: PowerListener) -> None:
        """Called after the host was booted (True) and before it is halted (False)."""
        self._listeners.append(listener)

    def on_change(self, listener: Callable[[Machine], Awaitable[None]]) -> None:
        """Called with the new machine after a fault was injected or healed."""
        self._changed.append(listener)

    async def replace(self, machine: Machine) -> None:
        """The machine physically changed (a fault, a repair)."""
        self.machines[machine.name] = machine
        for listener in self._changed:
            await listener(machine)

    def record(self, name: str, severity: str, message: str) -> None:
        """Write an entry into the machine's System Event Log; the oldest one goes when 1024 are full."""
        sel = self.states[name].sel
        sel.append((datetime.now(UTC).isoformat(timespec="seconds"), severity, message))
        del sel[:-SEL_CAPACITY]

    async def set_power(self, name: str, on: bool) -> None:
        """Switch a machine on or off; returns when the power state has changed (booting goes on in the background)."""
        state = self.states[name]
        if on == state.power:
            return
        if on:
            state.power = True
            self.record(name, "OK", "System is turning on.")
            state.boot_task = asyncio.create_task(self._boot(name), name=f"boot {name}")
            state.boot_task.add_done_callback(_tell_failure)
            return
        if state.boot_task is not None and state.boot_task is not asyncio.current_task():
            state.boot_task.cancel()
        await asyncio.sleep(self.delays.power_off)
        state.power = False
        self.record(name, "OK", "System is turning off.")
        await self._stop_host(name)

    async def install(self, name: str, disk_serial: str, user_data: bytes) -> None:
        """Write an OS to the machine as it is now, counting it before anything can go wrong; raises as `HostFace`."""
        if self.hosts is None:
            raise EdgeError("there is nothing to run its OS on", where=name, remedy="Start the lab's hosts first.")
        self.states[name].installs += 1
        await self.hosts.install(self.machines[name], disk_serial, user_data)

    async def reboot(self, name: str) -> None:
        """The OS asked for a reboot (`systemctl reboot`), or the BMC for ForceRestart."""
        await self.set_power(name, on=False)
        await self.set_power(name, on=True)

    async def _stop_host(self, name: str) -> None:
        state = self.states[name]
        if not state.running:
            return
        state.running = False
        for listener in self._listeners:
            await listener(self.machines[name], False)
        if self.hosts is not None:
            await self.hosts.halt(self.machines[name])

    async def _boot(self, name: str) -> None:
        state = self.states[name]
        await asyncio.sleep(self.delays.post)
        machine = self.machines[name]
        if not machine.boots:
            log.info("%s hangs in POST", name)
            self.record(name, "Critical", "System Firmware Hang: POST did not complete.")
            return
        state.boots += 1
        target = state.boot_target
        if state.boot_once:
            state.boot_target, state.boot_once = BootTarget.NONE, False
        if target is not BootTarget.HDD and self.provisioner is not None:
            answer = await self.provisioner.netboot(machine)
            if answer is NetbootAnswer.EPHEMERAL:
                return
        if self.hosts is None or not self.hosts.installed(machine):
            log.info("%s found nothing to boot from", name)
            return
        state.running = True
        await self.hosts.boot(self.machines[name])
        for listener in self._listeners:
            await listener(self.machines[name], True)


def _tell_failure(boot: asyncio.Task[None]) -> None:
    """Nobody awaits a boot: what broke it must reach the log."""
    if not boot.cancelled() and boot.exception() is not None:
        log.error("%s failed", boot.get_name(), exc_info=boot.exception())
