"""Wiring plans of the standard shapes: rail-optimised, non-blocking fat trees of 1, 2 or 3 tiers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.cabling.generate.racks import RackLayout, place
from clusterctl.cabling.generate.shape import Shape
from clusterctl.cabling.labels import qm9700_cage
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class PortNaming:
    """`adapters` are the hosts' HCAs, by rail; `twin_cages` whether two ports of a switch share one cage (OSFP)."""

    adapters: tuple[str, ...]
    twin_cages: bool


@dataclass(frozen=True, slots=True)
class _Names:
    """`leaves[unit][rail]`, `spines[pod][number]`, `cores[plane][number]`."""

    hosts: Sequence[str]
    leaves: Sequence[Sequence[str]]
    spines: Sequence[Sequence[str]]
    cores: Sequence[Sequence[str]]


def generate(shape: Shape, labels: PortNaming, room: RackLayout, ufm_ports: int = 0) -> WiringPlan:
    """Return the whole plan. Ports count from 1: a switch's downward ports first, its upward ones from the middle on.

    `ufm_ports` are ports for UFM appliances in the places of the last hosts, one on each rail's leaf; the shape has
    so many more hosts. Raises UsageError where the labels or the room do not fit the shape.
    """
    _check(shape, labels)
    roles = (*["leaf"] * shape.leaves, *["spine"] * shape.spines, *["core"] * shape.cores)
    placed = place(shape.wanted.hosts - ufm_slots(ufm_ports, shape.wanted.rails), roles, room)
    switches = iter(placed.switches)
    names = _Names(
        hosts=placed.hosts,
        leaves=[[next(switches) for _ in range(shape.wanted.rails)] for _ in range(shape.units)],
        spines=[[next(switches) for _ in range(shape.spines_per_pod)] for _ in range(shape.pods)],
        cores=[[next(switches) for _ in range(shape.cores_per_plane)] for _ in range(shape.planes)],
    )
    ufm = tuple(_ufm_cables(shape, names, ufm_ports))
    pairs = (*_host_cables(shape, names, labels), *ufm, *_leaf_cables(shape, names), *_spine_cables(shape, names))
    cables = tuple(
        PlannedCable(
            source=PortName(source, str(port)),
            destination=destination,
            cage=qm9700_cage(port) if labels.twin_cages else "",
            rail=rail,
            line=line,
        )
        for line, (source, port, destination, rail) in enumerate(pairs, start=2)
    )
    return WiringPlan(cables, frozenset((*placed.hosts, *(pair[2].device for pair in ufm))), placed.locations)


def ufm_slots(ports: int, rails: int) -> int:
    """Return how many hosts' places so many ports for UFM take: one place has a port on the leaf of each rail."""
    return -(-ports // rails)


_Pair = tuple[str, int, PortName, str]
"""Source device and port, destination, rail."""


def _check(shape: Shape, labels: PortNaming) -> None:
    if labels.twin_cages and shape.wanted.radix % 4:
        message = f"half of {shape.wanted.radix} ports would end in the middle of a cage of two"
        raise UsageError(message, where="--twin-cages", remedy="take --single-cages")
    names = labels.adapters
    if len(names) != shape.wanted.rails or len(set(names)) != len(names):
        message = f"{len(set(names))} adapters for {shape.wanted.rails} rails"
        raise UsageError(message, where="--adapters", remedy="name one adapter for each rail, in the rails' order")
    for name in names:
        if not name or name.isdigit() or any(sign in name for sign in ', "\n\r\t'):
            raise UsageError(f"{name!r} is no adapter's name", where="--adapters", remedy="such as mlx5_0")


def _host_cables(shape: Shape, names: _Names, labels: PortNaming) -> Iterator[_Pair]:
    for number, host in enumerate(names.hosts):
        unit, slot = divmod(number, shape.unit_hosts)
        for rail, adapter in enumerate(labels.adapters):
            yield names.leaves[unit][rail], slot + 1, PortName(host, adapter), str(rail + 1)


def _ufm_cables(shape: Shape, names: _Names, ports: int) -> Iterator[_Pair]:
    for number in range(ports):
        slot, rail = divmod(number, shape.wanted.rails)
        unit, place = divmod(len(names.hosts) + slot, shape.unit_hosts)
        yield names.leaves[unit][rail], place + 1, PortName(f"ufm{number + 1:02}", "mlx5_0"), str(rail + 1)


def _leaf_cables(shape: Shape, names: _Names) -> Iterator[_Pair]:
    """Yield the cables. Neighbouring uplinks of a leaf go to the same spine, so that both ports of a cage do."""
    for unit, leaves in enumerate(names.leaves):
        pod, in_pod = divmod(unit, shape.units_per_pod)
        for rail, leaf in enumerate(leaves):
            below = in_pod * shape.wanted.rails + rail
            for uplink in range(shape.spines_per_pod * shape.width):
                spine, twin = divmod(uplink, shape.width)
                port = PortName(names.spines[pod][spine], str(below * shape.width + twin + 1))
                yield leaf, shape.wanted.radix // 2 + uplink + 1, port, ""


def _spine_cables(shape: Shape, names: _Names) -> Iterator[_Pair]:
    """Yield the cables. Spines belong to the planes in turn, so that each leaf reaches every plane."""
    if not shape.planes:
        return
    share = -(-shape.spines_per_pod // shape.planes)
    for pod, spines in enumerate(names.spines):
        for number, spine in enumerate(spines):
            turn, plane = divmod(number, shape.planes)
            for uplink in range(shape.cores_per_plane * shape.core_width):
                core, twin = divmod(uplink, shape.core_width)
                port = (pod * share + turn) * shape.core_width + twin + 1
                yield spine, shape.wanted.radix // 2 + uplink + 1, PortName(names.cores[plane][core], str(port)), ""
