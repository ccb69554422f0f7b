"""One node in a report: its machine, its root findings with limits and raw output, and its time line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Digest, Evidence, Finding, Origin
from clusterctl.fleet.hardware.parts import MACHINE, Part, part_of
from clusterctl.fleet.node import Dimm, Drive, Gpu, Hca, Inventory, Stage
from clusterctl.fleet.payloads.node import StageAdvanced
from clusterctl.fleet.quantity import Bound, figure
from clusterctl.fleet.state import NodeState
from clusterctl.operations.excerpts import excerpt, fabric_excerpt
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.limits.reading import Behind, limits_behind

SHOWN = (
    Kind.STAGE_ADVANCED,
    Kind.NODE_HELD,
    Kind.NODE_QUARANTINED,
    Kind.NODE_RELEASED,
    Kind.HOLD_SET,
    Kind.HOLD_LIFTED,
    Kind.NODE_MERGED,
    Kind.NODE_RETIRED,
    Kind.PART_REPLACED,
)
"""Events of a time line; a report shows by the event that it led to."""
MOMENTS = 12
EXHIBITS = 3


@dataclass(frozen=True, slots=True)
class CaseExhibit:
    """A piece of evidence: `command` was run at `where`; `excerpt` is of its raw output."""

    digest: Digest
    command: str
    where: str
    at: datetime
    simulated: bool
    excerpt: str


@dataclass(frozen=True, slots=True)
class Charge:
    """One root finding. `limits`: the figures behind it; `judged_by`: which they are, and whether they have changed
    since; `more`: number of exhibits that are not shown.
    """

    finding: Finding
    part: Part
    model: str
    limits: tuple[Behind, ...]
    judged_by: str
    exhibits: tuple[CaseExhibit, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Moment:
    """One event of the time line; `mark` is what it did: `good`, `bad` or `way`."""

    at: datetime
    text: str
    actor: str
    mark: str


@dataclass(frozen=True, slots=True)
class NodeCase:
    """`earlier`: how many moments before those shown."""

    node: NodeState
    machine: str
    charges: tuple[Charge, ...]
    moments: tuple[Moment, ...]
    earlier: int


def case(
    node: NodeState, evidence: Mapping[Digest, Evidence], limits: Limits | None, events: Iterable[Event]
) -> NodeCase:
    """Return the case. `limits`: the SKU's today, None without; `events`: the node's, of the kinds in `SHOWN`."""
    found = node.inventory
    machine = f"{found.manufacturer} {found.model}" if found else "not identified"
    moments = tuple(Moment(e.at, str(e.payload), e.actor, _mark(e)) for e in events if e.kind in SHOWN)
    charges = tuple(_charge(node, finding, evidence, limits) for finding in node.findings)
    return NodeCase(node, machine, charges, moments[-MOMENTS:], max(0, len(moments) - MOMENTS))


def _charge(node: NodeState, finding: Finding, evidence: Mapping[Digest, Evidence], limits: Limits | None) -> Charge:
    part = part_of(node, finding)
    there = [evidence[digest] for digest in finding.evidence if digest in evidence]
    subject = finding.subject if finding.subject != "node" else ""
    measured = str(finding.measured or "")
    named = [finding.serial, *_places(node, finding), subject, part.slot]
    there.sort(key=lambda item: subject not in item.source.split())  # stable: the part's own commands first
    ends = finding.fault.split("\n")[1:]
    shown = [(item, fabric_excerpt(item.content, ends)) for item in there]
    shown.sort(key=lambda pair: not pair[1])  # stable: the fabric's lines of the ends that are wrong first
    words = [measured, *measured.split()[:1]]
    about = f"{finding.check} {finding.code.value} {finding.cause}"
    exhibits = tuple(
        _exhibit(item, text or excerpt(item.content, named, words, about)) for item, text in shown[:EXHIBITS]
    )
    behind, judged_by = _behind(finding, limits)
    return Charge(finding, part, _model(node, part), behind, judged_by, exhibits, len(finding.evidence) - len(exhibits))


def _places(node: NodeState, finding: Finding) -> list[str]:
    """Return the PCI addresses, without their functions, of the GPU that the finding is about."""
    gpus = (node.inventory.gpus if node.inventory else None) or ()
    return [gpu.pci.partition(".")[0] for gpu in gpus if gpu.pci and gpu.serial and gpu.serial == finding.serial]


def _behind(finding: Finding, limits: Limits | None) -> tuple[tuple[Behind, ...], str]:
    if not finding.limits:
        return (), ""
    if limits is None:
        return (), f"judged by limits {finding.limits[:12]}, which this site no longer has"
    changed = "" if limits.digest == finding.limits else f"; judged by {finding.limits[:12]}, the figures are of today"
    behind = limits_behind(finding.check, limits)
    return _judged_by(finding, behind) or behind, f"limits {limits.name}{changed}"


def _judged_by(finding: Finding, behind: Sequence[Behind]) -> tuple[Behind, ...]:
    """Return the figures that the finding's bound was taken from; none where it has no bound, or it is computed."""
    if not isinstance(finding.expected, Bound):
        return ()
    ends = {figure(end) for end in (finding.expected.low, finding.expected.high) if end is not None}
    return tuple(one for one in behind if one.value in ends and one.unit == finding.expected.unit)


def _exhibit(item: Evidence, text: str) -> CaseExhibit:
    return CaseExhibit(item.digest, item.source, item.where, item.at, item.origin is Origin.SIMULATED, text)


def _model(node: NodeState, part: Part) -> str:
    """Return the part's model by the BMC's inventory; of the whole machine, its model."""
    found = node.inventory
    if found is None:
        return ""
    if part.subject == MACHINE:
        return found.model
    same = (
        one.model
        for one in _with_model(found)
        if (part.slot and one.slot == part.slot) or (one.serial or "-") == part.serial
    )
    return next(same, "")


def _with_model(found: Inventory) -> Iterator[Gpu | Hca | Drive | Dimm]:
    """Yield the parts with a model that the BMC reports."""
    kinds: tuple[Sequence[Gpu | Hca | Drive | Dimm] | None, ...] = (found.gpus, found.hcas, found.drives, found.dimms)
    for parts in kinds:
        yield from parts or ()


def _mark(event: Event) -> str:
    if event.kind in (Kind.NODE_QUARANTINED, Kind.NODE_HELD, Kind.NODE_RETIRED, Kind.HOLD_SET):
        return "bad"
    gold = isinstance(event.payload, StageAdvanced) and event.payload.to is Stage.GOLD
    return "good" if gold else "way"
