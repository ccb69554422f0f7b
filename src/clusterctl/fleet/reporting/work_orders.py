"""A work order, and the command by which a technician reports its end."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from clusterctl.fleet.decisions.waiver import waiver_of
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName
from clusterctl.fleet.finding import Digest, Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import waiting
from clusterctl.fleet.hardware.parts import MACHINE, Part, part_of
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Location, Stage, Step
from clusterctl.fleet.payloads.hardware import FabricFault
from clusterctl.fleet.state import NodeState

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

    number      from 1, in walking order: by rack, unit and node, the worst of a node first
    location    where to go first
    nodes       the nodes that it keeps back, in the same order; empty for a fault of the fabric
    part        as operators name it (`gpu 3`, `cable at node001 mlx5_0`); `slot` as its BMC does; that and `serial` are
                empty where unknown
    cables      the planned cables at the part: both ends, serial, length
    findings    what was found of it, the worst first; they hold the remedies
    evidence    the evidence of the findings
    notes       what the technician must know before the work
    write_back  the command that reports what was done, `…` for the technician's text; empty where all its nodes have
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
    """Return the orders, numbered from 1. Each node is written back once, by its last order, with the parts of all."""
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
    repaired = dict.fromkeys(_repair_text(each) for node in done for each in by_node[node.name])
    later = tuple((name, number) for name, number in last.items() if number != order.number)
    return replace(order, write_back=_command(done, list(repaired)), later=later)


def _command(nodes: Sequence[Concerned], repaired: Sequence[str]) -> str:
    """Return the commands after the repair. The step that held a node tries it again unless it is in quarantine."""
    quarantined = [node.name for node in nodes if node.stage is Stage.QUARANTINED]
    if quarantined:
        return f"clusterctl release {shlex.join(quarantined)} --reason {shlex.quote('; '.join(repaired))}"
    if not nodes:
        return ""
    limits = [f"--limit {shlex.quote(node.name)}" for node in nodes] if len(nodes) <= _LIMITED else []
    return " ".join(("clusterctl", nodes[0].stopped_at.value, *limits))


def _repair_text(order: WorkOrder) -> str:
    known = f", serial {order.serial}" if order.serial and order.part != MACHINE else ""
    return f"{order.part}{known}: …"


CABLE_CHECKS = frozenset({"cable", "link_rate", "ethernet_cable"})
"""They judge what lies between devices: all nodes that one fault keeps back get the same text."""

_WHOLE = frozenset({"node", "fabric", MACHINE})
Planned = Mapping[PortName, PlannedCable]
"""Each planned cable, by either end."""


@dataclass(frozen=True, slots=True)
class _Task:
    """One finding that keeps one node back, and what part it is about."""

    node: NodeState
    step: Step
    finding: Finding
    part: Part
    notes: tuple[str, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Return a key that is the same for all that one piece of work repairs."""
        if self.finding.check in CABLE_CHECKS:
            return ("", self.finding.fault or self.finding.key, "" if self.finding.fault else self.node.id)
        return (self.node.id, self.part.serial or "".join(self.part.subject.split()).casefold())


def work_orders(
    nodes: Iterable[NodeState],
    now: datetime,
    faults: Iterable[tuple[FabricFault, tuple[Digest, ...]]] = (),
    planned: Planned | None = None,
) -> tuple[WorkOrder, ...]:
    """Return an order for each root finding of stopped nodes, and for each fault of the fabric, with evidence.

    A fault of the fabric that keeps nodes back as well is one order, at the fault's place.
    """
    groups: dict[tuple[str, ...], list[_Task]] = {}
    for node in sorted(nodes, key=lambda node: (walking(node.location), natural_key(node.name))):
        for task in _tasks(node, now):
            groups.setdefault(task.key, []).append(task)
    orders = {key: _of_tasks(tasks, planned or {}) for key, tasks in groups.items()}
    for fault, evidence in faults:
        key = ("", fault.fault, "")
        order = orders.get(key) or _of_fault(fault, evidence)
        orders[key] = replace(order, location=Location(fault.rack), part=", ".join(fault.subjects))
    return written_back(sorted(orders.values(), key=_walked))


def walking(location: Location) -> tuple[object, ...]:
    """Return a sort key: racks by name, from the lowest unit up; nodes without a place come last."""
    return (not location.rack, natural_key(location.rack), location.unit is None, location.unit or 0)


def _walked(order: WorkOrder) -> tuple[object, ...]:
    first = natural_key(order.nodes[0].name) if order.nodes else ()
    worst = max(finding.verdict.rank for finding in order.findings)
    return (walking(order.location), not order.nodes, first, -worst, natural_key(order.part))


def _tasks(node: NodeState, now: datetime) -> Iterator[_Task]:
    if node.stopped_at is None or node.stage is Stage.RETIRED:
        return
    held = (f"{node.name} is {node.hold}",) if node.held(now) else ()
    for finding in _work(node) or (_decided(node, node.stopped_at),):
        waiver = waiver_of(finding, node.waivers, now)
        notes = (*held, f"{finding.check} of {node.name} is {waiver}") if waiver is not None else held
        yield _Task(node, node.stopped_at, finding, part_of(node, finding), notes)


def _work(node: NodeState) -> tuple[Finding, ...]:
    """Return the root findings; those that wait for a later step's tools only where nothing else stopped the node."""
    return tuple(finding for finding in node.findings if not waiting(finding)) or node.findings


def _decided(node: NodeState, step: Step) -> Finding:
    """Return the decision of the gate, or of an operator, where no finding stopped the node."""
    cause = f"{node.cause} (decided by {node.stopped_by})" if node.stopped_by else node.cause
    return Finding(
        check="person" if node.stopped_by else step.value,
        verdict=node.verdict,
        code=Code.STOPPED_BY_OPERATOR if node.stopped_by else Code.STOPPED_BY_GATE,
        cause=cause,
        remedy=node.remedy,
    )


def _slot(tasks: Sequence[_Task]) -> str:
    """Return the first slot that is known."""
    return next(filter(None, (task.part.slot for task in tasks)), "")


def _evidence(tasks: Sequence[_Task]) -> tuple[Digest, ...]:
    return tuple(dict.fromkeys(digest for task in tasks for digest in task.finding.evidence))


def _of_tasks(tasks: Sequence[_Task], planned: Planned) -> WorkOrder:
    """Return the order for one part, or for one cable, which may keep several nodes back."""
    first = tasks[0]
    cable = first.finding.check in CABLE_CHECKS
    findings = {_diagnosis(task.finding): task.finding for task in tasks}
    return WorkOrder(
        number=0,
        location=first.node.location,
        nodes=_concerned(tasks),
        part=_cabling(tasks) if cable else " / ".join(dict.fromkeys(task.part.subject for task in tasks)),
        slot="" if cable else _slot(tasks),
        serial="" if cable else first.part.serial,
        cables=tuple(dict.fromkeys(cable for task in tasks for cable in _cables(task, planned))),
        findings=tuple(sorted(findings.values(), key=lambda finding: -finding.verdict.rank)),
        evidence=_evidence(tasks),
        notes=tuple(dict.fromkeys(note for task in tasks for note in task.notes)),
    )


def _diagnosis(finding: Finding) -> tuple[object, ...]:
    """Return a key that is equal where two findings of one piece of work need one text only."""
    mine = () if finding.fault else (finding.subject, finding.measured, finding.expected)
    return (finding.check, finding.code, finding.fault, *mine)


def _cabling(tasks: Sequence[_Task]) -> str:
    """Return `cable at node001 mlx5_0 and node002 mlx5_0`, or the cabling as a whole."""
    ends = [f"{task.node.name} {task.finding.subject}" for task in tasks if task.finding.subject not in _WHOLE]
    return f"cable at {' and '.join(ends)}" if ends else "cabling"


def _concerned(tasks: Iterable[_Task]) -> tuple[Concerned, ...]:
    nodes = {task.node.name: (task.node, task.step) for task in tasks}
    return tuple(
        Concerned(name, node.serial or "", node.location, node.stage, step) for name, (node, step) in nodes.items()
    )


def _cables(task: _Task, planned: Planned) -> Iterator[str]:
    """Yield the planned cables in the ports that the finding names."""
    for port in task.finding.subject.split(", "):
        cable = planned.get(PortName(task.node.name, port))
        if cable is not None:
            yield _in_words(cable)


def _in_words(cable: PlannedCable) -> str:
    cage = {cable.labelled: f" (cage {cable.cage})" if cable.cage else ""}
    ends = " – ".join(f"{end}{cage.get(end, '')}" for end in (cable.source, cable.destination))
    known = (f"serial {cable.serial}" if cable.serial else "", f"{cable.length_m:g} m" if cable.length_m else "")
    return ", ".join(filter(None, (ends, *known)))


def _of_fault(fault: FabricFault, evidence: tuple[Digest, ...]) -> WorkOrder:
    finding = Finding(
        check="fabric",
        verdict=Verdict.FAIL,
        code=Code.FABRIC_FAULT,
        subject="fabric",
        cause=fault.cause,
        remedy=fault.action,
    )
    return WorkOrder(0, Location(), (), "", "", "", (), (finding,), evidence)
