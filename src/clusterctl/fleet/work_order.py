"""A work order, and how a technician says that it is done."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.finding import Digest, Finding
from clusterctl.fleet.node import Location, Stage, Step
from clusterctl.fleet.parts import MACHINE

_LIMITED = 4


@dataclass(frozen=True, slots=True)
class Concerned:
    """A node that an order is about."""

    name: str
    serial: str
    location: Location
    stage: Stage
    stopped_at: Step


@dataclass(frozen=True, slots=True)
class WorkOrder:
    """One physical part, or one cable.

    number      from 1, in the order in which somebody walks: by rack, unit and node, the worst of a node first
    location    where to go first
    nodes       whom it keeps back, in the same order; empty where it is the fabric's own and no node's fault
    part        as people name it (`gpu 3`, `cable at node001 mlx5_0`); `slot` as its BMC does; that and `serial` are
                empty where nothing has told them
    cables      the planned cables at the part: both ends, serial, length
    findings    what was found of it, the worst first; they say what to do
    evidence    what that rests on
    notes       what is to be known before somebody touches it
    write_back  the command that tells what was done, `…` for the technician's words; empty where all its nodes have
                further orders
    later       node and number of the further order that writes it back, once both are done
    """

    number: int
    location: Location
    nodes: tuple[Concerned, ...]
    part: str
    slot: str
    serial: str
    cables: tuple[str, ...]
    findings: tuple[Finding, ...]
    evidence: tuple[Digest, ...]
    notes: tuple[str, ...] = ()
    write_back: str = ""
    later: tuple[tuple[str, int], ...] = ()

    @property
    def remedies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(finding.remedy for finding in self.findings if finding.remedy))


def written_back(orders: Iterable[WorkOrder]) -> tuple[WorkOrder, ...]:
    """Numbered from 1. Each node is written back once, by the last of its orders, which names the parts of all."""
    numbered = [replace(order, number=number) for number, order in enumerate(orders, start=1)]
    by_node: dict[str, list[WorkOrder]] = {}
    for order in numbered:
        for node in order.nodes:
            by_node.setdefault(node.name, []).append(order)
    return tuple(_written_back(order, by_node) for order in numbered)


def _written_back(order: WorkOrder, by_node: Mapping[str, Sequence[WorkOrder]]) -> WorkOrder:
    if not order.nodes:
        return replace(order, write_back="clusterctl cable observe")
    last = {node.name: by_node[node.name][-1].number for node in order.nodes}
    done = [node for node in order.nodes if last[node.name] == order.number]
    told = dict.fromkeys(_told(each) for node in done for each in by_node[node.name])
    later = tuple((name, number) for name, number in last.items() if number != order.number)
    return replace(order, write_back=_command(done, list(told)), later=later)


def _command(nodes: Sequence[Concerned], told: Sequence[str]) -> str:
    """Whoever is not in quarantine is tried again by the step that held it."""
    quarantined = [node.name for node in nodes if node.stage is Stage.QUARANTINED]
    if quarantined:
        return f"clusterctl release {shlex.join(quarantined)} --reason {shlex.quote('; '.join(told))}"
    if not nodes:
        return ""
    limits = [f"--limit {shlex.quote(node.name)}" for node in nodes] if len(nodes) <= _LIMITED else []
    return " ".join(("clusterctl", nodes[0].stopped_at.value, *limits))


def _told(order: WorkOrder) -> str:
    known = f", serial {order.serial}" if order.serial and order.part != MACHINE else ""
    return f"{order.part}{known}: …"
