"""Hosts as namespaces: systemd as pid 1, sshd, own address, own disk; without hardware and in a third of a second.

Not a security boundary: the kernel is the machine's. A host cannot set its clock, load modules, make device nodes or
change its settings, but root inside could mount what root may mount.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl_lab.hosts import cloud_config
from clusterctl_lab.hosts.applying import Imposer
from clusterctl_lab.hosts.cgroups import LAUNCHERS, LabCgroup
from clusterctl_lab.hosts.command import Ran
from clusterctl_lab.hosts.disks import Disks
from clusterctl_lab.hosts.fault_actions import boot_files
from clusterctl_lab.hosts.leftovers import LIMITS, sweep_leftovers
from clusterctl_lab.hosts.mounts import OWN_SYSCTLS, HostPaths
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.hosts.running import ExitReason, RunningHost, Skeleton, archive, inside, launch, prepare
from clusterctl_lab.hosts.switch import Switch
from clusterctl_lab.hosts.sysctls import copy_settings, raise_limits
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

BOOTS_AT_ONCE = 4 * (os.cpu_count() or 1)
OnExit = Callable[[str, ExitReason], Awaitable[None]]


def _no_skeleton(_: Machine) -> Skeleton:
    return {}


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What a lab's hosts are made of.

    skeleton     files rendered from the machine, laid at each boot and at `refresh` (stand-in tools' data)
    extra_lower  a folder that appears in every host's root, above the image (stand-in tools)
    neighbours   name → address, for every host's /etc/hosts
    """

    lab: str
    layout: Layout
    image: Path
    state_dir: Path
    rails: int = 8
    skeleton: Callable[[Machine], Skeleton] = _no_skeleton
    extra_lower: Path | None = None
    neighbours: Mapping[str, str] = field(default_factory=dict)


class NamespaceHosts:
    """The lab's `HostFace`. `start` before anything else, `close` at the end; the disks stay for the next start."""

    def __init__(self, settings: HostSettings, on_exit: OnExit | None = None) -> None:
        self._settings = settings
        self._on_exit = on_exit
        self._names = LabNames(settings.lab)
        self._disks = Disks(settings.state_dir / "hosts", settings.image, settings.neighbours)
        self._cgroup = LabCgroup.of(self._names)
        self._switch = Switch(self._names, settings.layout, settings.rails)
        self._imposer = Imposer(self._names, self._switch)
        self._running: dict[str, RunningHost] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._boots = asyncio.Semaphore(BOOTS_AT_ONCE)
        self._watchers: set[asyncio.Task[None]] = set()
        self._closing = False

    async def start(self) -> None:
        """Bring up the switch. The lab's leftovers must be swept before."""
        if os.geteuid() != 0:
            raise UsageError("the lab's hosts need root", remedy="Run the command through sudo.")
        run_dir = self._names.run_dir
        run_dir.mkdir(mode=0o700, parents=True)
        raise_limits(LIMITS)
        await asyncio.to_thread(copy_settings, run_dir / "sysctls", OWN_SYSCTLS)
        await self._switch.start(self._cgroup.create(LAUNCHERS))

    async def close(self) -> None:
        """Everything dies at once; what is installed stays."""
        self._closing = True
        for lock in list(self._locks.values()):
            async with lock:  # boots that are under way come to their end first
                pass
        names = list(self._running)
        self._running.clear()
        await asyncio.to_thread(self._cgroup.destroy_all)
        for name in names:
            await self._imposer.gone(name)
        await asyncio.gather(*self._watchers, return_exceptions=True)  # `_watched` has logged them
        await self._switch.stop()
        await sweep_leftovers(self._names.lab)

    async def add_addresses(self, addresses: Iterable[str]) -> None:
        """Addresses of the lab's services and BMCs on this machine, reachable from the hosts."""
        await self._switch.add_addresses(addresses)

    async def remove_addresses(self, addresses: Iterable[str]) -> None:
        """Addresses at which no host answers any more, not even to ARP."""
        await self._switch.remove_addresses(addresses)

    def installed(self, machine: Machine) -> bool:
        """True where an OS is on a drive that the machine (still) has."""
        return self._disks.installed(machine)

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        """Write the OS to the drive, replacing what was there, and apply the cloud-config."""
        if all(drive.serial != disk_serial for drive in machine.drives):
            raise EdgeError(
                f"has no drive {disk_serial}", where=machine.name, remedy="Choose one of the machine's own drives."
            )
        config = cloud_config.parse(user_data)
        async with self._locks[machine.name]:
            if machine.name in self._running:
                raise EdgeError("runs, and cannot be written to", where=machine.name, remedy="Power it off first.")
            await _to_its_end(self._disks.write, machine, disk_serial, config)

    async def erase(self, machine: Machine) -> None:
        """Nothing is on its drives any more."""
        async with self._locks[machine.name]:
            if machine.name in self._running:
                raise EdgeError("runs, and cannot be erased", where=machine.name, remedy="Power it off first.")
            await _to_its_end(self._disks.erase, machine)

    async def boot(self, machine: Machine) -> None:
        """Start the OS; returns when init runs, and its machine's ills are upon it. A host that runs is left alone."""
        async with self._locks[machine.name], self._boots:
            if machine.name in self._running:
                return
            if self._closing:
                raise EdgeError("does not boot: the lab closes", where=machine.name, remedy="Start the lab again.")
            try:
                host = await self._launch(machine)
                await self._imposer.booted(host)
            except BaseException:  # a cancelled boot too must leave nothing
                await asyncio.shield(self._clean(machine))
                raise
            self._running[machine.name] = host
        watcher = asyncio.create_task(self._watch(host), name=f"watch {machine.name}")
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watched)

    async def halt(self, machine: Machine) -> None:
        """Power is gone: every process dies at once, mounts and wires with them."""
        async with self._locks[machine.name]:
            host = self._running.pop(machine.name, None)
            if host is not None:
                await self._clean(host.machine)
                await host.ended()

    async def refresh(self, machine: Machine) -> None:
        """Show a running host its changed machine: cables, files of the skeleton (overwritten, never removed), ills."""
        async with self._locks[machine.name]:
            host = self._running.get(machine.name)
            if host is None:
                return
            await self._switch.recable(host.machine, machine)
            await self._imposer.change(host, machine, lambda: self._lay_files(host, machine))

    async def _lay_files(self, host: RunningHost, machine: Machine) -> None:
        tar = archive(self._settings.skeleton(machine))
        unpack = ("tar", "--extract", "--no-overwrite-dir", "--directory=/", "--file=-")
        ran = await inside(self._names.lab, host, unpack, stdin=tar)
        if ran.rc != 0:
            raise EdgeError(
                f"does not take its new files: {ran.stderr.decode(errors='replace')[-300:]}",
                where=machine.name,
                remedy="Power it off and on.",
            )

    async def exec(self, name: str, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float = 120.0) -> Ran:
        """Run `argv` as root inside a running host, past its network (faults and tests only)."""
        host = self._running.get(name)
        if host is None:
            raise EdgeError("does not run", where=name, remedy="Power it on first.")
        return await inside(self._names.lab, host, argv, stdin=stdin, timeout_s=timeout_s)

    def pid(self, name: str) -> int | None:
        """The machine's process id of the host's init; None where it does not run."""
        host = self._running.get(name)
        return host.pid if host else None

    def cgroup(self, name: str) -> Path:
        """The host's cgroup, for faults: `cgroup.freeze` hangs it."""
        return self._cgroup.path / name

    def _run(self, machine: Machine) -> Path:
        return self._names.run_dir / machine.name

    async def _launch(self, machine: Machine) -> RunningHost:
        settings = self._settings
        disk = await _to_its_end(self._disks.booted, machine)
        lowers = (settings.extra_lower, settings.image) if settings.extra_lower else (settings.image,)
        paths = HostPaths(self._run(machine), disk.path, lowers, self._names.run_dir / "sysctls")
        files = {**self._settings.skeleton(machine), **boot_files(machine.system)}
        prepare(paths, machine, self._settings.layout, files)
        cgroup = self._cgroup.create(machine.name)
        return await launch(self._names.lab, paths, machine, cgroup, self._switch.netns)

    async def _clean(self, machine: Machine) -> None:
        await asyncio.to_thread(self._cgroup.destroy, machine.name)
        await self._imposer.gone(machine.name)
        await self._switch.unplug(machine)
        with contextlib.suppress(FileNotFoundError):  # a boot that failed before it made its folder
            await asyncio.to_thread(shutil.rmtree, self._run(machine))

    async def _watch(self, host: RunningHost) -> None:
        """Notice that a host stopped by itself, clean up after it, and report it."""
        reason = await host.ended()
        name = host.machine.name
        async with self._locks[name]:
            if self._running.get(name) is not host:
                return  # halted, or the lab closes
            del self._running[name]
            await self._clean(host.machine)
        log.info("%s: %s from within", name, reason.value)
        if self._on_exit is not None:
            await self._on_exit(name, reason)

    def _watched(self, watcher: asyncio.Task[None]) -> None:
        self._watchers.discard(watcher)
        if not watcher.cancelled() and watcher.exception() is not None:
            log.error("%s failed", watcher.get_name(), exc_info=watcher.exception())


async def _to_its_end(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run the call in a thread and return its result. A cancelled caller waits for its end: the disk is then free."""
    work = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise
