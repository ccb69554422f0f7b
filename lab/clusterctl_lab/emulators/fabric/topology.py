"""Which devices and cables the lab's fabric has: a rail-optimised fat tree of 64-port switches.

Each leaf has a rail's hosts of one pod on ports 1–32, and its trunks on ports 33 and up, spread over the spines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl_lab.machine import HOSTS_PER_LEAF, SPINES, Machine, SwitchPort, leaf

SWITCH_PORTS = 64
MAX_TRUNKS = 4
"""Links from one leaf to one spine, where the spine has ports for so many."""


@dataclass(frozen=True, slots=True, order=True)
class End:
    """One end of a cable: ibsim's node id (`H-` or `S-` and the GUID) and the port."""

    node: str
    port: int


Cable = tuple[End, End]


@dataclass(frozen=True, slots=True)
class Adapter:
    """One HCA in the fabric; `gbps` is the rate that it supports."""

    guid: str
    description: str
    gbps: int


@dataclass(frozen=True, slots=True)
class Switch:
    guid: str
    description: str


def spine(number: int) -> str:
    """`number` from 0."""
    return f"spine-{number + 1}"


def leaves(machines: Iterable[Machine]) -> list[str]:
    """Return every leaf that the machines need, in order of pod and rail, independent of the current cabling."""
    needed = {((m.index - 1) // HOSTS_PER_LEAF, hca.rail) for m in machines for hca in m.hcas}
    return [leaf(rail, pod) for pod, rail in sorted(needed)]


def trunks(machines: Iterable[Machine]) -> tuple[tuple[SwitchPort, SwitchPort], ...]:
    """The leaf–spine cables: leaf's end first."""
    names = leaves(machines)
    many = max(1, min(MAX_TRUNKS, SWITCH_PORTS // max(1, len(names))))
    return tuple(
        (
            SwitchPort(name, HOSTS_PER_LEAF + number * many + link + 1),
            SwitchPort(spine(number), position * many + link + 1),
        )
        for position, name in enumerate(names)
        for number in range(SPINES)
        for link in range(many)
    )


def switches(machines: Iterable[Machine]) -> Mapping[str, Switch]:
    """Return the switches by name; GUIDs follow from the order, so that a lab has the same GUIDs each time."""
    names = [*(spine(number) for number in range(SPINES)), *leaves(machines)]
    return {
        name: Switch(f"9c059103{number:06x}00", f"MF0;{name}:MQM9700/U1") for number, name in enumerate(names, start=1)
    }


def adapters(machines: Iterable[Machine]) -> tuple[Adapter, ...]:
    return tuple(Adapter(hca.guid, f"{m.name} {hca.name}", hca.rate_gbps) for m in machines for hca in m.hcas)


def cables(
    machines: Iterable[Machine], built: Mapping[str, Switch], running: Callable[[str], bool]
) -> frozenset[Cable]:
    """The cables with light on them now: all trunks, and those of hosts that run.

    Where two plugs claim one switch port (half-way through a swap between two machines) the first machine has it.
    """
    machines = tuple(machines)
    trunk_cables = {(_switch_end(built, near), _switch_end(built, far)) for near, far in trunks(machines)}
    taken = {end for cable in trunk_cables for end in cable}
    plugged = set()
    for end, far in _host_cables(machines, running):
        switch_end = _switch_end(built, far)
        if switch_end not in taken:
            taken.add(switch_end)
            plugged.add((end, switch_end))
    return frozenset(trunk_cables | plugged)


def lit(all_cables: Iterable[Cable], disabled: frozenset[End]) -> frozenset[Cable]:
    """Return the cables without a disabled port."""
    return frozenset(cable for cable in all_cables if disabled.isdisjoint(cable))


def present(ends: Iterable[End], built: Mapping[str, Switch], fitted: Iterable[Adapter]) -> frozenset[End]:
    """Return the cables with existing devices."""
    nodes = {f"S-{switch.guid}" for switch in built.values()} | {f"H-{adapter.guid}" for adapter in fitted}
    return frozenset(end for end in ends if end.node in nodes)


def _host_cables(machines: Iterable[Machine], running: Callable[[str], bool]) -> Iterator[tuple[End, SwitchPort]]:
    for machine in machines:
        for hca in machine.hcas:
            if hca.cable is not None and running(machine.name):
                yield End(f"H-{hca.guid}", 1), hca.cable


def _switch_end(built: Mapping[str, Switch], end: SwitchPort) -> End:
    return End(f"S-{built[end.switch].guid}", end.port)
