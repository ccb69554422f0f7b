"""Does to running hosts what `conditions` and `shaping` plan."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.hosts import fault_actions as conditions
from clusterctl_lab.hosts import shaping
from clusterctl_lab.hosts.cgroups import LabCgroup
from clusterctl_lab.hosts.command import check
from clusterctl_lab.hosts.fault_actions import Action, Freeze, Quota, Script, Wire
from clusterctl_lab.hosts.names import LabNames
from clusterctl_lab.hosts.quota import CpuQuota
from clusterctl_lab.hosts.running import RunningHost, inside
from clusterctl_lab.hosts.switch import Switch
from clusterctl_lab.machine import Machine, Shaping, System

SCRIPT_SECONDS = 60.0


class Imposer:
    """Knows what is wrong with each running host of a lab at the moment. Not to be called twice at once for a host."""

    def __init__(self, names: LabNames, switch: Switch) -> None:
        self._lab = names.lab
        self._cgroup = LabCgroup.of(names)
        self._quota = CpuQuota.of(names)
        self._switch = switch
        self._systems: dict[str, System] = {}
        self._shapers: dict[str, shaping.RailShaper] = {}

    async def booted(self, host: RunningHost) -> None:
        """Give a host that has just started all faults of its machine; return when it has them."""
        machine = host.machine
        if machine.system != System():
            await self._act(host, [conditions.SETTLED, *conditions.plan(System(), machine.system).impose])
        self._systems[machine.name] = machine.system
        await self._follow_rails(host, machine)

    async def change(self, host: RunningHost, machine: Machine, lay_files: Callable[[], Awaitable[None]]) -> None:
        """The machine has changed under a running host; `lay_files` runs when nothing is in its way."""
        todo = conditions.plan(self._systems[machine.name], machine.system)
        await self._act(host, todo.lift)
        await lay_files()
        await self._act(host, todo.impose)
        self._systems[machine.name] = machine.system
        await self._follow_rails(host, machine)

    async def gone(self, name: str) -> None:
        """The host has ended, with all its processes."""
        self._systems.pop(name, None)
        shaper = self._shapers.pop(name, None)
        if shaper is not None:
            await shaper.stop()
        await asyncio.to_thread(self._quota.forget, name)

    async def _act(self, host: RunningHost, actions: Iterable[Action]) -> None:
        name = host.machine.name
        for action in actions:
            match action:
                case Freeze(on):
                    (self._cgroup.path / name / "cgroup.freeze").write_text("1" if on else "0")
                case Quota(percent):
                    await asyncio.to_thread(self._quota.limit, name, percent)
                case Wire(up):
                    await self._switch.management(host.machine, up=up)
                case Script():
                    await self._run(host, action)

    async def _run(self, host: RunningHost, script: Script) -> None:
        argv = ("sh", "-euc", script.text, "condition", script.argument)
        ran = await inside(self._lab, host, argv, timeout_s=SCRIPT_SECONDS)
        if ran.rc != 0:
            raise EdgeError(
                f"cannot be made so: {ran.stderr.decode(errors='replace').strip()[-300:]}",
                where=host.machine.name,
                remedy="Power it off and on; each boot applies the machine's faults again.",
            )

    async def _follow_rails(self, host: RunningHost, machine: Machine) -> None:
        async def shape(rail: int, wanted: Shaping | None) -> None:
            ends = {f"/proc/{host.pid}/ns/net": f"ib{rail}", self._switch.netns: f"h{machine.index}r{rail}"}
            for netns, end in ends.items():
                batch = shaping.rules([end], wanted) if wanted else shaping.no_rules([end])
                await check(self._lab, ("nsenter", f"--net={netns}", "tc", "-batch", "-"), stdin=batch)

        shaper = self._shapers.setdefault(machine.name, shaping.RailShaper(machine.name, shape))
        await shaper.follow(machine)
