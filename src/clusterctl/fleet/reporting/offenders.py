"""Repeat offenders: machines and parts that fail again and again. A few of them cause most trouble.

A part's offences follow its serial from machine to machine: one that failed in two is bad whatever is round it. How
often and for how long out of service, over 28 days, after Kokolis et al., "Revisiting Reliability in Large-Scale
Machine Learning Research Clusters" (arxiv.org/abs/2410.21680).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.payloads.decisions import NodeReleased, ReinstallOrdered, RevalidationOrdered
from clusterctl.fleet.payloads.node import NodeQuarantined

WINDOW = timedelta(days=28)
REPEATED = 2
"""So many offences make an offender."""
OFFENCE = Kind.NODE_QUARANTINED
ENDS = (
    Kind.NODE_RELEASED,
    Kind.REVALIDATION_ORDERED,
    Kind.REINSTALL_ORDERED,
    Kind.NODE_MERGED,
    Kind.NODE_RETIRED,
)
"""What ends the time out of service. Only of nodes with an offence: healthy ones may be revalidated each night."""


@dataclass(frozen=True, slots=True)
class Offence:
    """One quarantine: `subject` and `serial` name the part, where one is to blame."""

    node: NodeId
    at: datetime
    check: str
    subject: str
    serial: str
    cause: str
    by_operator: bool


@dataclass(frozen=True, slots=True)
class Offender:
    """A machine, and its offences in order; `out` is how long it was quarantined in the window."""

    node: NodeId
    offences: tuple[Offence, ...]
    out: timedelta


@dataclass(frozen=True, slots=True)
class BadPart:
    """A part by its serial, and its offences in order, in whichever machine."""

    serial: str
    offences: tuple[Offence, ...]

    @property
    def nodes(self) -> tuple[NodeId, ...]:
        return tuple(dict.fromkeys(offence.node for offence in self.offences))


@dataclass(frozen=True, slots=True)
class Offenders:
    """The worst first."""

    nodes: tuple[Offender, ...] = ()
    parts: tuple[BadPart, ...] = ()

    def of(self, node: NodeId) -> Offender | None:
        return next((offender for offender in self.nodes if offender.node == node), None)

    def parts_in(self, node: NodeId, fitted: Collection[str] = ()) -> tuple[BadPart, ...]:
        """Return the parts that failed in it, and failed before or since, there or elsewhere.

        `fitted`: serials of parts in it now; those that failed elsewhere only are returned, too.
        """
        return tuple(part for part in self.parts if node in part.nodes or part.serial in fitted)


def offenders(events: Iterable[Event], machines: Collection[str], now: datetime) -> Offenders:
    """Return the offenders by events of the last `WINDOW`, in order: each `OFFENCE`, and the `ENDS` of their nodes.

    machines  serials of whole machines

    A merged node is another machine from then on and has no offences; a retired node is left out. Their parts keep
    their offences.
    """
    since = now - WINDOW
    all_of_them: list[Offence] = []
    found: dict[NodeId, list[Offence]] = {}
    outages = _Outages(since)
    for event in events:
        if event.stream is not Stream.NODE or event.at < since:
            continue
        node = NodeId(event.subject)
        outages.count(node, event)
        if event.kind in (Kind.NODE_MERGED, Kind.NODE_RETIRED):
            found.pop(node, None)
        elif isinstance(event.payload, NodeQuarantined) and _blames(event.payload, machines):
            offence = _offence(node, event.at, event.payload)
            found.setdefault(node, []).append(offence)
            all_of_them.append(offence)
    out = outages.until(now)
    nodes = [Offender(node, tuple(some), out[node]) for node, some in found.items() if len(some) >= REPEATED]
    nodes.sort(key=lambda one: (-len(one.offences), -one.out, one.node))
    return Offenders(tuple(nodes), _parts(all_of_them, machines))


def _blames(payload: NodeQuarantined, machines: Collection[str]) -> bool:
    """Return whether a quarantine counts as an offence: a check found it, or an operator named the part.

    A quarantine before an erase carries the serial of the whole machine, which is no part.
    """
    return not payload.by_operator or (bool(payload.serial) and payload.serial not in machines)


def _offence(node: NodeId, at: datetime, payload: NodeQuarantined) -> Offence:
    return Offence(node, at, payload.check, payload.subject, payload.serial, payload.cause, payload.by_operator)


def _parts(offences: Sequence[Offence], machines: Collection[str]) -> tuple[BadPart, ...]:
    by_serial: Mapping[str, list[Offence]] = defaultdict(list)
    for offence in offences:
        if offence.serial and offence.serial not in machines:
            by_serial[offence.serial].append(offence)
    parts = [BadPart(serial, tuple(some)) for serial, some in by_serial.items() if len(some) >= REPEATED]
    return tuple(sorted(parts, key=lambda part: (-len(part.nodes), -len(part.offences), part.serial)))


NONE = Offenders()
_ENDINGS = (NodeReleased, RevalidationOrdered, ReinstallOrdered)
"""Orders that lead out of quarantine, where the node was in it."""


class _Outages:
    """How long each node was out: from its quarantine to whatever ended that."""

    def __init__(self, since: datetime) -> None:
        self._since = since
        self._began: dict[NodeId, datetime] = {}
        self._out: dict[NodeId, timedelta] = defaultdict(timedelta)
        self._counted: set[NodeId] = set()

    def count(self, node: NodeId, event: Event) -> None:
        if isinstance(event.payload, _ENDINGS) and event.payload.was is not Stage.QUARANTINED:
            return
        first = node not in self._counted
        self._counted.add(node)
        if event.kind is Kind.NODE_QUARANTINED:
            self._began.setdefault(node, event.at)
        elif isinstance(event.payload, _ENDINGS) and first:  # it was quarantined before the window began
            self._out[node] += event.at - self._since
        elif node in self._began:
            self._out[node] += event.at - self._began.pop(node)

    def until(self, now: datetime) -> Mapping[NodeId, timedelta]:
        """Return the time out of each node, of those that still are until now. To be asked once."""
        for node, began in self._began.items():
            self._out[node] += now - began
        return self._out
