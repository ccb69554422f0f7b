"""The lab's truth while it runs: which machines exist, which have power, and who is told when that changes.

Lives in the lab daemon's asyncio loop; the faces (BMCs, MAAS, hosts, fabric) read it and subscribe to it. The BMC face
switches power; MAAS switches it through the BMC, as the real one does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.boot import BootTarget, devices, first
from clusterctl_lab.event_texts import Happening, told
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import LogLine, Machine
from clusterctl_lab.partners import HostFace, Metal, NetbootAnswer, Provisioner
from clusterctl_lab.state import Change, MachineState

log = logging.getLogger(__name__)

SEL_CAPACITY = 1024


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds of simulated time that physical things take."""

    power_off: float = 0.2
    post: float = 1.0
    commission: float = 1.0
    write_os: float = 2.0
    flash: float = 2.0
    bmc_restart: float = 2.0
    netboot_timeout: float = 12.0


PowerListener = Callable[[Machine, bool], Awaitable[None]]


class World:
    """All machines of one lab and their power. `sound` are the machines without their faults, as delivered and as
    written to since; by default they are delivered as `machines`.
    """

    def __init__(
        self,
        layout: Layout,
        machines: Mapping[str, Machine],
        delays: Delays,
        sound: Mapping[str, Machine] | None = None,
    ) -> None:
        self.layout = layout
        self.delays = delays
        self.machines = dict(machines)
        self.sound = dict(sound or machines)
        self.states = {name: MachineState() for name in machines}
        self.provisioner: Provisioner | None = None
        self.hosts: HostFace | None = None
        self.metal: Metal | None = None
        self._listeners: list[PowerListener] = []
        self._watchers: list[PowerListener] = []
        self._telling: set[asyncio.Task[None]] = set()
        self._changed: list[Callable[[Machine], Awaitable[None]]] = []
        for machine in self.machines.values():
            self._log(machine.name, machine.logged)

    def on_power(self, listener: PowerListener) -> None:
        """Called after the lab has booted the host (True) and before it halts it (False); never for virtual metal,
        which boots by itself.
        """
        self._listeners.append(listener)

    def on_run(self, listener: PowerListener) -> None:
        """Called after an OS began to run (True) and when it does no more (False), whoever booted it."""
        self._watchers.append(listener)

    def on_change(self, listener: Callable[[Machine], Awaitable[None]]) -> None:
        """Called with the new machine after a fault was injected or healed."""
        self._changed.append(listener)

    async def replace(self, machine: Machine) -> None:
        """The machine physically changed (a fault, a repair)."""
        before = self.machines[machine.name]
        self.machines[machine.name] = machine
        self._log(machine.name, machine.logged[len(before.logged) :])
        await self.tell(machine.name)

    def rewrite(self, name: str, change: Change) -> None:
        """Somebody who may do so wrote into the machine: it stays when faults are mended. `tell` tells the faces."""
        self.machines[name] = change(self.machines[name])
        self.sound[name] = change(self.sound[name])

    async def tell(self, name: str) -> None:
        """The machine is another one now: every face looks at it."""
        for listener in self._changed:
            await listener(self.machines[name])

    async def _apply(self, name: str) -> None:
        """What waited for this boot takes effect."""
        waiting, self.states[name].at_boot = self.states[name].at_boot, {}
        for work in waiting.values():
            work()
        await self.tell(name)

    def _log(self, name: str, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self.record(name, line.severity, line.message)

    def _happened(self, name: str, happening: Happening) -> None:
        self._log(name, [told(self.machines[name], happening)])

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
            self._happened(name, Happening.POWER_ON)
            self._start_boot(name)
            return
        self._end_boot(name)
        await asyncio.sleep(self.delays.power_off)
        self._end_boot(name)  # it may have reset itself meanwhile
        state.power = state.posting = state.restarting = False
        self._happened(name, Happening.POWER_OFF)
        await self._stop_host(name)

    async def install(self, name: str, disk_serial: str, user_data: bytes) -> None:
        """Write an OS to the machine as it is now, counting it before anything can go wrong; raises as `HostFace`."""
        if self.hosts is None:
            raise EdgeError("there is nothing to run its OS on", where=name, remedy="Start the lab's hosts first.")
        self.states[name].installs += 1
        await self.hosts.install(self.machines[name], disk_serial, user_data)

    async def erase(self, name: str) -> None:
        """Erase all of the machine's drives; `EdgeError` where one of them does not take it."""
        machine = self.machines[name]
        for drive in machine.drives:
            if drive.failed:
                raise EdgeError(f"drive {drive.serial} does not erase", where=name, remedy="Replace the drive.")
        if self.hosts is not None:
            await self.hosts.erase(machine)
        if machine.boots_from:
            await self.replace(replace(machine, boots_from=""))

    async def reboot(self, name: str) -> None:
        """The OS asked for a reboot (`systemctl reboot`), or the BMC for ForceRestart."""
        await self.set_power(name, on=False)
        await self.set_power(name, on=True)

    async def shut_down(self, name: str, *, restart: bool = False) -> None:
        """The BMC asks the OS to end, and gives power again where it shall restart. A host that is no metal obeys at
        once.
        """
        if self.metal is not None:
            self.states[name].restarting = restart
            await self.metal.press_power_button(self.machines[name])
        elif restart:
            await self.reboot(name)
        else:
            await self.set_power(name, on=False)

    def left_post(self, name: str) -> None:
        """As `MetalListener`."""
        self.states[name].posting = False

    def started(self, name: str, target: BootTarget) -> None:
        """As `MetalListener`; what runs from a drive is taken for an OS."""
        state = self.states[name]
        state.posting, state.booted_from, state.running = False, target, target is BootTarget.HDD
        if state.running:
            telling = asyncio.create_task(self._tell_power(self.machines[name], on=True), name=f"tell of {name}")
            self._telling.add(telling)
            telling.add_done_callback(self._told)

    async def _tell_power(self, machine: Machine, *, on: bool) -> None:
        heard = self._watchers if self.metal is not None else [*self._listeners, *self._watchers]
        for listener in heard:
            await listener(machine, on)

    def _told(self, telling: asyncio.Task[None]) -> None:
        self._telling.discard(telling)
        _tell_failure(telling)

    async def rebooted(self, name: str) -> None:
        """As `MetalListener`: a boot like any other, but that power has been on all the time."""
        await self._stop_host(name)
        if self.states[name].power:
            self._start_boot(name)

    async def switched_off(self, name: str) -> None:
        """As `MetalListener`."""
        restart = self.states[name].restarting
        await self.set_power(name, on=False)
        if restart:
            await self.set_power(name, on=True)

    async def _stop_host(self, name: str) -> None:
        state, machine = self.states[name], self.machines[name]
        ran, state.running = state.running, False
        if self.metal is not None:
            await self.metal.power_off(machine)
        if not ran:
            return
        await self._tell_power(machine, on=False)
        if self.hosts is not None:
            await self.hosts.halt(machine)

    def _end_boot(self, name: str) -> None:
        task = self.states[name].boot_task
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def _start_boot(self, name: str) -> None:
        task = asyncio.create_task(self._boot(name), name=f"boot {name}")
        task.add_done_callback(_tell_failure)
        self.states[name].boot_task = task

    async def _boot(self, name: str) -> None:
        state = self.states[name]
        state.posting, state.booted_from = True, BootTarget.NONE
        await asyncio.sleep(self.delays.post)
        if not self.machines[name].boots:
            log.info("%s hangs in POST", name)
            self._happened(name, Happening.FIRMWARE_HANG)
            return
        if state.at_boot:
            await self._apply(name)
        state.boots += 1
        machine, override = self.machines[name], self._override(name)
        if override.ends_there:
            log.info("%s boots from %s, for which the lab has no machine", name, override.value)
            state.posting, state.booted_from = False, override
            return
        if self.metal is not None:
            await self.metal.power_on(machine, devices(machine, state.boot_order, override))
            return
        state.posting = False
        target = override if override is not BootTarget.NONE else self._first(name)
        if target.from_network and self.provisioner is not None:
            answer = await self.provisioner.netboot(machine)
            if answer is NetbootAnswer.EPHEMERAL:
                state.booted_from = target
                return
        if self.hosts is None or not self.hosts.installed(machine):
            log.info("%s found nothing to boot from", name)
            return
        state.running, state.booted_from = True, BootTarget.HDD
        await self.hosts.boot(self.machines[name])
        await self._tell_power(self.machines[name], on=True)

    def _override(self, name: str) -> BootTarget:
        """What this boot tries before its order; NONE: nothing. It uses up an override for one boot."""
        state = self.states[name]
        target = state.boot_target
        if state.boot_once:
            state.boot_target, state.boot_once, state.boot_uri = BootTarget.NONE, False, ""
        return BootTarget.NONE if target.follows_order(inserted=bool(state.media)) else target

    def _first(self, name: str) -> BootTarget:
        """What its order leads to. A disk that is only first in the order is passed over while it has no OS."""
        machine = self.machines[name]
        target = first(machine, self.states[name].boot_order)
        if target is BootTarget.HDD and (self.hosts is None or not self.hosts.installed(machine)):
            return BootTarget.PXE
        return target


def _tell_failure(boot: asyncio.Task[None]) -> None:
    """Nobody awaits a boot, nor who is told of it: what broke it must reach the log."""
    if not boot.cancelled() and boot.exception() is not None:
        log.error("%s failed", boot.get_name(), exc_info=boot.exception())
