"""The requests that a running lab answers over its control socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from clusterctl.fleet.errors import UsageError
from clusterctl_lab import faults
from clusterctl_lab.fault_injection import bmc_quirks, injected, maas_quirks
from clusterctl_lab.machine import Machine
from clusterctl_lab.messages import Message
from clusterctl_lab.running_lab import RunningLab
from clusterctl_lab.state import MachineState


class Requests:
    """Answers requests `{"do": NAME, …}`; the request `down` sets `stop`."""

    def __init__(self, lab: RunningLab) -> None:
        self.stop = asyncio.Event()
        self._lab = lab
        self._known: Mapping[str, Callable[[Message], Awaitable[Message]]] = {
            "status": self._status,
            "inject": self._inject,
            "heal": self._heal,
            "power": self._power,
            "down": self._down,
        }

    async def handle(self, request: Message) -> Message:
        """Return the answer. Raises `UsageError` for an unknown request."""
        name = _text(request, "do")
        if name not in self._known:
            raise UsageError(f"the lab cannot {name!r}", remedy="Update clusterctl and the lab to the same version.")
        return await self._known[name](request)

    async def _status(self, _: Message) -> Message:
        settings, world = self._lab.settings, self._lab.world
        return {
            "lab": settings.name,
            "subnet": settings.subnet,
            "site": settings.site,
            "log": str(settings.paths.log),
            "machines": [self._row(machine, world.states[name]) for name, machine in world.machines.items()],
        }

    def _row(self, machine: Machine, state: MachineState) -> dict[str, Any]:
        installed = self._lab.installed(machine)
        pod = self._lab.settings.layout.pod(machine.index)
        return {
            "name": machine.name,
            "rack": machine.rack,
            "unit": machine.unit,
            "pod": pod.number if pod else 0,
            "bmc": machine.bmc.address,
            "address": machine.address,
            "power": "on" if state.power else "off",
            "boot": boot_stage(machine, state),
            "installed": installed,
            "installs": state.installs,
            "faults": [*machine.faults, *bmc_quirks(machine), *maas_quirks(machine)],
        }

    async def _inject(self, request: Message) -> Message:
        fault = _text(request, "fault")
        machine = await self._lab.break_machine(fault, _text(request, "target"))
        return {"machine": machine.name, "fault": injected(machine, fault)}

    async def _heal(self, request: Message) -> Message:
        return {"healed": list(await self._lab.heal(_text(request, "target")))}

    async def _power(self, request: Message) -> Message:
        world = self._lab.world
        machine = faults.machine_named(world.machines, _text(request, "target"))
        await world.set_power(machine.name, on=bool(request.get("on")))
        return {"machine": machine.name, "power": "on" if world.states[machine.name].power else "off"}

    async def _down(self, _: Message) -> Message:
        self.stop.set()
        return {}


def boot_stage(machine: Machine, state: MachineState) -> str:
    """Return how far the machine has booted.

    `off`; `starting` (POST, network boot); `hangs in POST`; `no OS` (the installer works on it, or nothing to boot);
    `running`.
    """
    if not state.power:
        return "off"
    if state.running:
        return "running"
    if state.posting and machine.boots:
        return "starting"
    if state.boot_task is not None and not state.boot_task.done():
        return "starting"
    return "no OS" if machine.boots else "hangs in POST"


def _text(request: Message, key: str) -> str:
    value = request.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"{key} is no text", remedy="Update clusterctl and the lab to the same version.")
    return value
