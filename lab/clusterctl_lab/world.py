"""The state of a running lab: its machines and their power. It notifies the emulators of changes.

It runs in the lab daemon's asyncio loop; the emulators (BMCs, MAAS, hosts, fabric) read it and subscribe to it. The BMC
emulator switches power; MAAS switches it through the BMC, as the real MAAS does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.boot import BootTarget, HttpBoot, devices, first
from clusterctl_lab.event_texts import BmcEvent, log_entry
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import LogLine, Machine
from clusterctl_lab.partners import HostEmulator, Metal, NetbootAnswer, Provisioner
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
    slow_request: float = 20.0


PowerListener = Callable[[Machine, bool], Awaitable[None]]


class World:
    """All machines of one lab and their power.

    `healthy` are the machines without their faults, with all permanent changes since delivery; by default `machines`.
    """

    def __init__(
        self,
        layout: Layout,
        machines: Mapping[str, Machine],
        delays: Delays,
        healthy: Mapping[str, Machine] | None = None,
    ) -> None:
        self.layout = layout
        self.delays = delays
        self.machines = dict(machines)
        self.healthy = dict(healthy or machines)
        self.states = {name: MachineState() for name in machines}
        self.provisioner: Provisioner | None = None
        self.hosts: HostEmulator | None = None
        self.metal: Metal | None = None
        self._listeners: list[PowerListener] = []
        self._watchers: list[PowerListener] = []
        self._notifying: set[asyncio.Task[None]] = set()
        self._changed: list[Callable[[Machine], Awaitable[None]]] = []
        for machine in self.machines.values():
            self._log(machine.name, machine.logged)

    def on_power(self, listener: PowerListener) -> None:
        """Call `listener` after the lab has booted the host (True) and before it halts it (False).

        Virtual machines boot by themselves: for them it is never called.
        """
        self._listeners.append(listener)

    def on_run(self, listener: PowerListener) -> None:
        """Call `listener` when an OS starts (True) and when it ends (False), however it was booted."""
        self._watchers.append(listener)

    def on_change(self, listener: Callable[[Machine], Awaitable[None]]) -> None:
        """Call `listener` with the new machine after a fault was injected or healed."""
        self._changed.append(listener)

    async def replace(self, machine: Machine) -> None:
        """Replace the machine after a physical change (a fault, a repair)."""
        before = self.machines[machine.name]
        self.machines[machine.name] = machine
        self._log(machine.name, machine.logged[len(before.logged) :])
        await self.notify(machine.name)

    def rewrite(self, name: str, change: Change) -> None:
        """Change the machine permanently: the change stays when faults are healed. `notify` informs the emulators."""
        self.machines[name] = change(self.machines[name])
        self.healthy[name] = change(self.healthy[name])

    async def notify(self, name: str) -> None:
        """Call each `on_change` listener with the machine."""
        for listener in self._changed:
            await listener(self.machines[name])

    async def _apply(self, name: str) -> None:
        """Apply the changes that waited for this boot."""
        waiting, self.states[name].at_boot = self.states[name].at_boot, {}
        for work in waiting.values():
            work()
        await self.notify(name)

    def _log(self, name: str, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self.record(name, line.severity, line.message)

    def _log_event(self, name: str, event: BmcEvent) -> None:
        self._log(name, [log_entry(self.machines[name], event)])

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
            self._log_event(name, BmcEvent.POWER_ON)
            self._start_boot(name)
            return
        self._end_boot(name)
        await asyncio.sleep(self.delays.power_off)
        self._end_boot(name)  # it may have reset itself meanwhile
        state.power = state.posting = state.restarting = False
        self._log_event(name, BmcEvent.POWER_OFF)
        await self._stop_host(name)

    async def install(self, name: str, disk_serial: str, user_data: bytes) -> None:
        """Write an OS to the machine and count the install before it can fail; raises as `HostEmulator`."""
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
        """Reboot the machine, for the OS (`systemctl reboot`) or the BMC (ForceRestart)."""
        await self.set_power(name, on=False)
        await self.set_power(name, on=True)

    async def shut_down(self, name: str, *, restart: bool = False) -> None:
        """Ask the OS to shut down, for the BMC; with `restart`, switch the machine on again.

        A host in namespaces obeys at once.
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
        """As `MetalListener`; what boots from a drive counts as an OS."""
        state = self.states[name]
        state.posting, state.booted_from, state.running = False, target, target is BootTarget.HDD
        if state.running:
            task = asyncio.create_task(self._notify_power(self.machines[name], on=True), name=f"notify of {name}")
            self._notifying.add(task)
            task.add_done_callback(self._notified)

    async def _notify_power(self, machine: Machine, *, on: bool) -> None:
        listeners = self._watchers if self.metal is not None else [*self._listeners, *self._watchers]
        for listener in listeners:
            await listener(machine, on)

    def _notified(self, task: asyncio.Task[None]) -> None:
        self._notifying.discard(task)
        _log_failure(task)

    async def rebooted(self, name: str) -> None:
        """As `MetalListener`: a normal boot, except that power stayed on."""
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
        await self._notify_power(machine, on=False)
        if self.hosts is not None:
            await self.hosts.halt(machine)

    def _end_boot(self, name: str) -> None:
        task = self.states[name].boot_task
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def _start_boot(self, name: str) -> None:
        task = asyncio.create_task(self._boot(name), name=f"boot {name}")
        task.add_done_callback(_log_failure)
        self.states[name].boot_task = task

    async def _boot(self, name: str) -> None:
        state = self.states[name]
        state.posting, state.booted_from = True, BootTarget.NONE
        await asyncio.sleep(self.delays.post)
        if not self.machines[name].boots:
            log.info("%s hangs in POST", name)
            self._log_event(name, BmcEvent.FIRMWARE_HANG)
            return
        if state.at_boot:
            await self._apply(name)
        state.boots += 1
        machine, http, override = self.machines[name], self._http(name), self._override(name)
        if override.ends_there:
            log.info("%s boots from %s, for which the lab has no machine", name, override.value)
            state.posting, state.booted_from = False, override
            return
        if self.metal is not None:
            await self.metal.power_on(machine, devices(machine, state.boot_order, override), http)
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
        log.info("%s runs its OS", name)
        await self._notify_power(self.machines[name], on=True)

    def _http(self, name: str) -> HttpBoot | None:
        """Return the URI of an override that is in force."""
        state = self.states[name]
        wanted = state.boot_target is BootTarget.UEFI_HTTP and state.boot_uri
        return HttpBoot(state.boot_uri, state.boot_authorities) if wanted else None

    def _override(self, name: str) -> BootTarget:
        """Return the target before the boot order, NONE without one; consume a one-time override."""
        state = self.states[name]
        target = state.boot_target
        if state.boot_once:
            state.boot_target, state.boot_once, state.boot_uri = BootTarget.NONE, False, ""
        return BootTarget.NONE if target.follows_order(inserted=bool(state.media)) else target

    def _first(self, name: str) -> BootTarget:
        """Return the first target of the boot order; PXE where that is a disk without an OS."""
        machine = self.machines[name]
        target = first(machine, self.states[name].boot_order)
        if target is BootTarget.HDD and (self.hosts is None or not self.hosts.installed(machine)):
            return BootTarget.PXE
        return target


def _log_failure(boot: asyncio.Task[None]) -> None:
    """Log the failure of a boot: no other task awaits it."""
    if not boot.cancelled() and boot.exception() is not None:
        log.error("%s failed", boot.get_name(), exc_info=boot.exception())
