"""A technician who does exactly what the explanations order, in the world of `world.py`."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.cabling.actions import MovePlug, PlugIn, Rename, Reseat, Restore, TakeOut
from clusterctl.cabling.explain.verify import CablingVerification
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid
from tests.cabling.world import World, unit_of


class Technician:
    """Finds ports by the names that the verification gave them, and devices that were not seen by their labels."""

    def __init__(self, world: World, verification: CablingVerification) -> None:
        self._world = world
        self._steps = [step for explanation in verification.explanations for step in explanation.steps]
        self._ports = {name: port for port, name in verification.names.items()}
        self._devices = {unit_of(name): port.guid for name, port in self._ports.items()}
        world.label({guid: unit for unit, guid in self._devices.items() if unit in world.guids})

    def work(self) -> int:
        """Do all of it; how many actions it was. To look where nothing is wrong (a leaf behind a dead one) is none."""
        steps = self._steps
        self._rename(step for step in steps if isinstance(step, Rename))
        for step in steps:
            if isinstance(step, TakeOut):
                self._take_out(step)
        self._move([step for step in steps if isinstance(step, MovePlug)])
        for step in steps:
            if isinstance(step, PlugIn):
                self._connect(self._port(step.a), self._port(step.b))
            if isinstance(step, Reseat):
                for ends in step.cables:
                    self._connect(*(self._port(end) for end in ends))
        needless = sum(not self._restore(step) for step in steps if isinstance(step, Restore))
        return len(steps) - needless

    def _port(self, name: PortName) -> PortId:
        if name in self._ports:
            return self._ports[name]
        return PortId(self._device(unit_of(name)), int(name.port) if name.port.isdigit() else 1)

    def _device(self, unit: str) -> Guid:
        """Seen under that name, or labelled so."""
        return self._devices.get(unit) or self._world.guids[unit]

    def _rename(self, steps: Iterable[Rename]) -> None:
        world = self._world
        new: dict[Guid, str] = {}
        for step in steps:
            whole = set() if step.planned.port else {world.host_of(guid) for guid in step.guids}
            adapters = [guid for guid in world.names if not world.is_switch(guid) and world.host_of(guid) in whole]
            for guid in {*step.guids, *adapters}:
                if world.is_switch(guid):
                    new[guid] = step.planned.device
                else:
                    new[guid] = f"{step.planned.device} {step.planned.port or world.names[guid].split()[1]}"
        world.names |= new
        self._devices |= {name: guid for guid, name in new.items()}
        world.label({guid: name for guid, name in new.items() if name in world.guids})

    def _take_out(self, step: TakeOut) -> None:
        cable = self._world.cable_at(self._port(step.a))
        if cable is None:
            raise LookupError(step)
        cable.clear()

    def _move(self, steps: Iterable[MovePlug]) -> None:
        """Take all plugs out first; what sits in a port where another belongs, hangs loose then."""
        held = [(self._world.pull(self._port(step.source)), self._port(step.target)) for step in steps]
        for cable, port in held:
            if self._world.cable_at(port) is not None:
                self._world.pull(port)
            cable.add(port)

    def _connect(self, *ports: PortId) -> None:
        """With the cable that already hangs from one of the ports, or a new one."""
        world = self._world
        loose = [cable for cable in map(world.cable_at, ports) if cable is not None and len(cable) == 1]
        for port in ports:
            if world.cable_at(port) is not None:
                world.pull(port)
        cable = loose[0] if loose else set()
        if not loose:
            world.cables.append(cable)
        cable.update(ports)

    def _restore(self, step: Restore) -> bool:
        """Power for the devices, then the cables of which neither port is taken; whether there was anything to do."""
        world = self._world
        there = {guid for unit, guid in world.guids.items() if unit.split()[0] in step.devices}
        found = bool(world.off & there)
        world.off -= there
        for ends in step.cables:
            ports = [self._port(end) for end in ends]
            if not any(len(cable) == 2 for cable in map(world.cable_at, ports) if cable is not None):
                self._connect(*ports)
                found = True
        return found
