"""One node in a report: its machine, its root findings with limits and raw output, and its time line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Digest, Evidence, Finding, Origin
from clusterctl.fleet.hardware.parts import MACHINE, Part, part_of
from clusterctl.fleet.node import Dimm, Drive, Gpu, Hca, Inventory, Stage
from clusterctl.fleet.payloads.node import StageAdvanced
from clusterctl.fleet.quantity import Bound, figure
from clusterctl.fleet.state import NodeState
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.limits.reading import Behind, limits_behind

LINES = 14
WIDTH = 160
_AROUND = 2


def excerpt(content: bytes, part: Iterable[str], measured: Iterable[str] = ()) -> str:
    """Return at most `LINES` lines of raw output: the first, the one that names the part, and those around the line
    with the measured value. Omitted lines show as `[… N lines]`; lines are cut at `WIDTH`.

    `part`, `measured`: words, the most specific first. The value is looked for behind the part's line, and before the
    next block of its kind: a line that begins as the part's line does.
    """
    lines = content.decode(errors="replace").replace("\r", "").rstrip().split("\n")
    if len(lines) <= LINES:
        return "\n".join(map(_cut, lines))
    named = _line_with(lines, part, 1, len(lines))
    end = len(lines) if named is None else _end_of_block(lines, named)
    value = _line_of_value(lines, measured, named or 1, end)
    hit = value if value is not None else named or 1
    start = min(max(1, hit - _AROUND), len(lines) - LINES + 1)
    end = start + LINES - 1
    kept = sorted({0, named or 0, *range(start, end)})
    shown = [_cut(lines[0])]
    for last, at in pairwise(kept):
        shown += [*_gap(at - last - 1), _cut(lines[at])]
    return "\n".join([*shown, *_gap(len(lines) - end)])


def _line_with(lines: Sequence[str], words: Iterable[str], start: int, end: int) -> int | None:
    """Return the first line of `lines[start:end]` with the first word that any of them has, in any letter case."""
    folded = [line.casefold() for line in lines[start:end]]
    wanted = [word.casefold() for word in words if len(word) > 2]
    return next((start + at for word in wanted for at, line in enumerate(folded) if word in line), None)


def _line_of_value(lines: Sequence[str], values: Iterable[str], start: int, end: int) -> int | None:
    """Return the first of `lines[start:end]` with one of `values` as value: behind `:` or `=`, else a whole word."""
    for value in filter(None, values):
        word = rf"{re.escape(value)}(?!\w|\.\d)"
        for pattern in (rf"[:=]\s*{word}", rf"(?<![\w.]){word}"):
            found = next((at for at in range(start, end) if re.search(pattern, lines[at], re.IGNORECASE)), None)
            if found is not None:
                return found
    return None


def _end_of_block(lines: Sequence[str], named: int) -> int:
    """Return the line behind the block that begins at `named`: where the same key of another part begins."""
    key = re.match(r"\s*[A-Za-z][\w /-]*", lines[named])
    if key is None:
        return len(lines)
    begins = re.compile(rf"{re.escape(key[0].rstrip())}\b")
    return next((at for at in range(named + 1, len(lines)) if begins.match(lines[at])), len(lines))


def _gap(count: int) -> list[str]:
    """Return the line that stands for omitted lines; nothing where none is omitted."""
    if not count:
        return []
    return [f"[… {count} lines]" if count != 1 else "[… 1 line]"]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


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
class Exhibit:
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
    exhibits: tuple[Exhibit, ...]
    more: int


@dataclass(frozen=True, slots=True)
class Moment:
    """One event of the time line; `mark` is what it did: `good`, `bad` or `way`."""

    at: datetime
    text: str
    actor: str
    mark: str


@dataclass(frozen=True, slots=True)
class Case:
    """`earlier`: how many moments before those shown."""

    node: NodeState
    machine: str
    charges: tuple[Charge, ...]
    moments: tuple[Moment, ...]
    earlier: int


def case(node: NodeState, evidence: Mapping[Digest, Evidence], limits: Limits | None, events: Iterable[Event]) -> Case:
    """Return the case. `limits`: the SKU's today, None without; `events`: the node's, of the kinds in `SHOWN`."""
    found = node.inventory
    machine = f"{found.manufacturer} {found.model}" if found else "not identified"
    moments = tuple(Moment(e.at, str(e.payload), e.actor, _mark(e)) for e in events if e.kind in SHOWN)
    charges = tuple(_charge(node, finding, evidence, limits) for finding in node.findings)
    return Case(node, machine, charges, moments[-MOMENTS:], max(0, len(moments) - MOMENTS))


def _charge(node: NodeState, finding: Finding, evidence: Mapping[Digest, Evidence], limits: Limits | None) -> Charge:
    part = part_of(node, finding)
    there = [evidence[digest] for digest in finding.evidence if digest in evidence]
    subject = finding.subject if finding.subject != "node" else ""
    measured = str(finding.measured or "")
    named = [finding.serial, *_places(node, finding), subject, part.slot]
    there.sort(key=lambda item: subject not in item.source.split())  # stable: the part's own commands first
    exhibits = tuple(_exhibit(item, named, [measured, *measured.split()[:1]]) for item in there[:EXHIBITS])
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


def _exhibit(item: Evidence, named: Iterable[str], measured: Iterable[str]) -> Exhibit:
    simulated = item.origin is Origin.SIMULATED
    return Exhibit(item.digest, item.source, item.where, item.at, simulated, excerpt(item.content, named, measured))


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
