"""The lab's `Metal`: virtual machines on the lab's switch, each a QEMU process in a cgroup of its own."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl_lab.boot import HttpBoot
from clusterctl_lab.hosts.cgroups import LAUNCHERS, LabCgroup
from clusterctl_lab.hosts.leftovers import sweep_leftovers
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.hosts.running import ExitReason, Skeleton
from clusterctl_lab.hosts.switch import Switch
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.metal import wires
from clusterctl_lab.metal.command_line import VARIABLES, Places, command_line, device_id
from clusterctl_lab.metal.console import Console, FirmwareReader
from clusterctl_lab.metal.disk_files import Lay, lay_once
from clusterctl_lab.metal.drives import MetalDrives
from clusterctl_lab.metal.share import Shares
from clusterctl_lab.metal.virtual_machine import Socket, VirtualMachine, start
from clusterctl_lab.partners import MetalListener

log = logging.getLogger(__name__)


def _nothing(_: Machine) -> Lay:
    return Lay()


def _no_files(_: Machine) -> Skeleton:
    return {}


@dataclass(frozen=True, slots=True)
class MetalSettings:
    """`state_dir` is the lab's: drives, the firmware's memory and the consoles lie in `metal/` below it.

    on_disk   what is laid on a machine's disk before its OS boots for the first time
    in_share  what the OS may read of its machine as it is now; by file name
    """

    lab: str
    layout: Layout
    state_dir: Path
    rails: int = 0
    on_disk: Callable[[Machine], Lay] = _nothing
    in_share: Callable[[Machine], Skeleton] = _no_files


class QemuMetal:
    """`start` before anything else, `close` at the end; the drives stay until the lab's state is removed."""

    def __init__(self, settings: MetalSettings, listener: MetalListener) -> None:
        self._settings = settings
        self._listener = listener
        self._names = LabNames(settings.lab)
        self._drives = MetalDrives(settings.state_dir / "metal")
        self._cgroup = LabCgroup.of(self._names)
        self._switch = Switch(self._names, settings.layout, settings.rails)
        self._shares = Shares(self._drives.folder)
        self._running: dict[str, VirtualMachine] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._watchers: set[asyncio.Task[None]] = set()
        self._closing = False

    async def start(self, machines: Iterable[Machine]) -> None:
        """Bring up the switch, and have the machines' drives. The lab's leftovers must be swept before."""
        self._names.run_dir.mkdir(mode=0o700, parents=True)
        for machine in machines:
            self._drives.insert(machine)
        await self._switch.start(self._cgroup.create(LAUNCHERS))
        await self._switch.announce()

    async def close(self) -> None:
        """Every machine loses its power at once."""
        self._closing = True
        for lock in list(self._locks.values()):
            async with lock:  # those that are just starting come to that first
                pass
        self._running.clear()
        await asyncio.to_thread(self._cgroup.destroy_all)
        await asyncio.gather(*self._watchers, return_exceptions=True)  # `_watched` has logged them
        await self._switch.stop()
        await sweep_leftovers(self._names.lab)

    async def add_addresses(self, addresses: Iterable[str]) -> None:
        """As `NamespaceHosts`: of the lab's BMCs, on this machine."""
        await self._switch.add_addresses(addresses)

    async def remove_addresses(self, addresses: Iterable[str]) -> None:
        """As `NamespaceHosts`."""
        await self._switch.remove_addresses(addresses)

    def installed(self, machine: Machine) -> bool:
        """Return whether its boot drive has partitions; no more is known from outside of it."""
        return any(drive.boot and self._drives.partitioned(machine, drive) for drive in machine.drives)

    async def power_on(self, machine: Machine, devices: Sequence[str], http: HttpBoot | None = None) -> None:
        """As `Metal`."""
        async with self._locks[machine.name]:
            if machine.name in self._running:
                return
            if self._closing:
                raise EdgeError("does not start: the lab closes", where=machine.name, remedy="Start the lab again.")
            try:
                virtual = await self._start(machine, devices, http)
            except BaseException:  # a cancelled start too must leave nothing
                await asyncio.shield(self._clean(machine))
                raise
            self._running[machine.name] = virtual
        watcher = asyncio.create_task(self._watch(virtual), name=f"watch {machine.name}")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watched)

    async def power_off(self, machine: Machine) -> None:
        """As `Metal`."""
        async with self._locks[machine.name]:
            if self._running.pop(machine.name, None) is not None:
                await self._clean(machine)

    async def press_power_button(self, machine: Machine) -> None:
        """As `Metal`: an OS without logind or acpid does not listen."""
        virtual = self._running.get(machine.name)
        if virtual is not None:
            virtual.qmp.command("system_powerdown")

    async def refresh(self, machine: Machine) -> None:
        """Apply its network cables, the output of its tools, and pulled drives, as they are now; its other drives and
        its serial are read at the next power-on only.
        """
        async with self._locks[machine.name]:
            virtual = self._running.get(machine.name)
            if virtual is None:
                return
            self._shares.write(machine, self._settings.in_share(machine))
            await self._switch.recable(virtual.machine, machine)
            await self._switch.management(machine, up=not machine.system.network_lost)
            for number, drive in enumerate(machine.drives):
                if drive.pulled and drive.serial not in virtual.pulled:
                    virtual.qmp.command("device_del", id=device_id(number))
                    virtual.pulled.add(drive.serial)

    async def _start(self, machine: Machine, devices: Sequence[str], http: HttpBoot | None) -> VirtualMachine:
        run, folder = self._names.run_dir / machine.name, self._drives.folder / machine.name
        run.mkdir(mode=0o700, exist_ok=True)
        await asyncio.to_thread(self._drives.insert, machine)
        places = Places(
            variables=self._variables(machine, http),
            drives={drive.serial: self._drives.path(machine, drive) for drive in machine.drives},
            console=run / "console",
            share=self._shares.path(machine),
            authorities=self._drives.authorities(machine, http) if http and http.authorities else None,
        )
        self._shares.write(machine, self._settings.in_share(machine))
        await self._lay(machine, devices[0], folder)
        wire = run / "switch.batch"
        wire.write_text(wires.plug(machine))
        console = Console(places.console, folder / "console.log", self._reader(machine.name))
        tried = ", ".join(("a URI", *devices) if http else devices)
        console.note(f"power on {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC, boots from {tried}")
        socket = Socket(self._cgroup.create(machine.name), self._switch.netns, wire, run / "qemu.log")
        argv = command_line(machine, devices, places)
        return await start(self._names.lab, machine, argv, socket, console)

    def _variables(self, machine: Machine, http: HttpBoot | None) -> Path:
        """Return the file with the firmware's memory for this boot."""
        return (
            self._drives.variables_for(machine, http, VARIABLES) if http else self._drives.variables(machine, VARIABLES)
        )

    async def _lay(self, machine: Machine, first: str, folder: Path) -> None:
        """The lab's files, where the machine is about to boot its root disk. One that does not take them boots all the
        same: it has then nothing but what was installed.
        """
        drive = next((drive for drive in machine.drives if drive.boot and drive.serial == first), None)
        if drive is None or drive.failed or not drive.on_bus:
            return
        try:
            if await lay_once(
                self._names.lab, self._drives.path(machine, drive), self._settings.on_disk(machine), folder
            ):
                log.info("%s: the lab's files are on %s", machine.name, drive.serial)
        except ClusterctlError:
            log.exception("%s boots without the lab's files", machine.name)

    def _reader(self, name: str) -> FirmwareReader:
        return FirmwareReader(partial(self._listener.left_post, name), partial(self._listener.started, name))

    async def _clean(self, machine: Machine) -> None:
        await asyncio.to_thread(self._cgroup.destroy, machine.name)
        await self._switch.unplug(machine)

    async def _watch(self, virtual: VirtualMachine) -> None:
        """Notice that a machine stopped by itself, clean up after it, and report it."""
        reason = await virtual.ended()
        name = virtual.machine.name
        async with self._locks[name]:
            if self._running.get(name) is not virtual:
                return  # it lost its power, or the lab closes
            del self._running[name]
            await self._clean(virtual.machine)
        if reason is ExitReason.CRASH:
            log.error("%s: QEMU ended: %s", name, virtual.complaints())
        log.info("%s: %s from within", name, reason.value)
        if reason is ExitReason.REBOOT:
            await self._listener.rebooted(name)
        else:
            await self._listener.switched_off(name)

    def _watched(self, watcher: asyncio.Task[None]) -> None:
        self._watchers.discard(watcher)
        if not watcher.cancelled() and watcher.exception() is not None:
            log.error("%s failed", watcher.get_name(), exc_info=watcher.exception())
