"""What `burnin export` takes from the journal: each node's last burn-in, and the node as it stood then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import dropwhile

from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.fold import fold
from clusterctl.fleet.node import Step
from clusterctl.fleet.payloads.node import ReportRecorded
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl_burnin.probe import Probe
from clusterctl_burnin.recordings.export import Export, export


@dataclass(frozen=True, slots=True)
class Taken:
    """`lost`: how many pieces of evidence the journal names and no longer has."""

    export: Export
    lost: int


def last_burnin(context: SiteContext, node: NodeSummary, probes: Iterable[Probe]) -> Taken | str:
    """The node's last burn-in as a recording; in words why there is none."""
    events = list(context.journal.history(Stream.NODE, node.id))
    until_then = list(dropwhile(lambda event: not _is_burnin(event), reversed(events)))[::-1]
    if not until_then:
        return "no burn-in of it is recorded"
    then, digests = fold(until_then, node.id), dict.fromkeys(until_then[-1].evidence)
    evidence = context.evidence(digests)
    found = export(then, tuple(evidence.values()), probes)
    if found is None:
        return "its last burn-in brought no answer of any check's probes"
    return Taken(found, len(digests) - len(evidence))


def _is_burnin(event: Event) -> bool:
    return isinstance(event.payload, ReportRecorded) and event.payload.report.step == Step.BURNIN.value
