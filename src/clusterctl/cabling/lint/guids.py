"""Names of a plan that the GUIDs of an observed fabric contradict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.labels import listed, shortened
from clusterctl.cabling.lint.plan_index import ListedPort, PlanIndex, PlanProblem, ProblemKind, lines
from clusterctl.cabling.lint.rails import host_of
from clusterctl.cabling.names import name_ports
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.node import Guid
from clusterctl.fleet.plain_numbers import is_number


def name_flaws(plan: PlanIndex, fabric: Fabric) -> Iterator[PlanProblem]:
    """Yield one name on several GUIDs, a host's name on a switch and the reverse, ports that the device does not have,
    and one card's GUID under two hosts' names.
    """
    bare = WiringPlan(tuple(entry.cable for entry in plan.listed), plan.hosts)
    units: dict[Guid, PortName] = {}
    for port, name in name_ports(fabric, bare, {}).ports.items():
        units.setdefault(port.guid, name)
    named = {guid: unit.device for guid, unit in units.items() if _planned(plan, unit.device)}
    yield from _several(plan, fabric)
    yield from _kinds(plan, fabric, named)
    yield from _ports(plan, fabric, named)
    yield from _cards(plan, fabric, units)


def _planned(plan: PlanIndex, device: str) -> bool:
    return device in plan.hosts or device in plan.switches


def _several(plan: PlanIndex, fabric: Fabric) -> Iterator[PlanProblem]:
    """Yield names on several GUIDs, only where the plan has a device with the name."""
    same: dict[str, list[Device]] = defaultdict(list)
    for device in fabric.devices.values():
        if not device.is_aggregation:
            same[device.description].append(device)
    for description, devices in same.items():
        words = description.replace(":", ";").replace(";", " ").split()
        name = next((word for word in words if _planned(plan, word)), "")
        if len(devices) > 1 and name:
            guids = shortened(sorted(device.guid for device in devices))
            cause = f"{len(devices)} devices call themselves {description!r}: GUIDs {guids}"
            action = f"set the node description of each, so that {name} is one device"
            yield PlanProblem(ProblemKind.NAME_CONTRADICTED, cause, action, _where(plan, name), (name,))


def _kinds(plan: PlanIndex, fabric: Fabric, named: Mapping[Guid, str]) -> Iterator[PlanProblem]:
    for guid, name in named.items():
        is_switch = fabric.devices[guid].kind is DeviceKind.SWITCH
        if is_switch == (name in plan.hosts):
            words = ("host", "switch") if is_switch else ("switch", "host's adapter")
            cause = f"the plan takes {name} for a {words[0]}, but GUID {guid} under that name is a {words[1]}"
            action = f"{name}: correct the name in the plan or on the device"
            yield PlanProblem(ProblemKind.NAME_CONTRADICTED, cause, action, _where(plan, name), (name,))


def _ports(plan: PlanIndex, fabric: Fabric, named: Mapping[Guid, str]) -> Iterator[PlanProblem]:
    for guid, name in named.items():
        has = fabric.devices[guid].ports
        entries = plan.switches.get(name, ())
        beyond = [entry for entry in entries if _number(plan.near(entry, name)) > has]
        if beyond:
            ports = shortened(sorted({plan.near(entry, name).port for entry in beyond}, key=int))
            cause = f"{name} (GUID {guid}) has {has} ports, and the plan uses {ports}"
            action = f"{name}: correct the port, or the name of the device"
            yield PlanProblem(ProblemKind.NAME_CONTRADICTED, cause, action, lines(beyond), (name,))


def _cards(plan: PlanIndex, fabric: Fabric, units: Mapping[Guid, PortName]) -> Iterator[PlanProblem]:
    """Yield adapters of one card, which is in one host, by their system image GUID."""
    hosts: dict[Guid, set[str]] = defaultdict(set)
    for guid, unit in units.items():
        system = fabric.devices[guid].system_guid
        if system is not None and unit.device in plan.hosts:
            hosts[system].add(host_of(unit))
    for system, names in hosts.items():
        if len(names) > 1:
            cause = f"one card (system GUID {system}) is planned in {listed(sorted(names))}"
            action = "correct the node descriptions: one of these hosts carries another's name"
            where = tuple(line for name in sorted(names) for line in _where(plan, name)[:1])
            yield PlanProblem(ProblemKind.NAME_CONTRADICTED, cause, action, where, tuple(sorted(names)))


def _where(plan: PlanIndex, name: str) -> tuple[str, ...]:
    return lines(_of(plan, name))[:3]


def _of(plan: PlanIndex, name: str) -> Iterable[ListedPort]:
    entries = plan.switches.get(name)
    return entries or (entry for entry in plan.listed if any(end.device == name for end in entry.ends))


def _number(port: PortName) -> int:
    return int(port.port) if is_number(port.port) else 0
