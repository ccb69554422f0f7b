"""Quarantined nodes as signals: nodes with one fault, one cause at one place, or in one rack at one time are one.

The rules, in this order. Times are those at which the nodes went into quarantine.

1. Nodes of an open incident stay in it.
2. A node joins an open incident with the same fault; or with the same cause in its rack (or in the whole site), within
   `JOIN` of that incident's last node.
3. Of the others, nodes with one fault are one incident.
4. Nodes with one cause in `SPREAD` racks or more, each within `JOIN` of the one before, are one incident of the site.
5. At least `SPREAD` nodes of one rack with several causes, within `JOIN`, are one incident of that rack.
6. Nodes of one rack with one cause, within `JOIN`, are one incident. A node without a rack is one by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TypeVar

from clusterctl.fleet.finding import Finding
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.incidents.incident import SITE, IncidentFacts, IncidentKind, IncidentState, Member, Severity
from clusterctl.fleet.incidents.signals import MOST_MEMBERS, SPREAD
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState

JOIN = timedelta(hours=1)
MIXED = "several_causes"
K = TypeVar("K", bound=Hashable)
_EVIDENCE = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Stopped:
    """A node in quarantine, by its worst finding."""

    member: Member
    code: str
    fault: str
    rack: str
    since: datetime

    @property
    def place(self) -> str:
        return self.rack or self.member.name


def stopped(state: NodeState) -> Stopped | None:
    """Return what an incident knows of a node; None where it is not in quarantine."""
    if state.stage is not Stage.QUARANTINED:
        return None
    worst: Finding | None = state.findings[0] if state.findings else None
    decided = Code.STOPPED_BY_OPERATOR if state.stopped_by else Code.STOPPED_BY_GATE
    evidence = dict.fromkeys(chain.from_iterable(finding.evidence for finding in state.findings))
    name = state.name or state.id
    member = Member(
        name=name,
        node=name,
        serial=state.serial or "",
        place=str(state.location),
        cause=state.cause,
        remedy=state.remedy,
        since=state.since,
        evidence=tuple(evidence)[:_EVIDENCE],
    )
    return Stopped(
        member,
        worst.code.value if worst else decided.value,
        worst.fault if worst else "",
        state.location.rack,
        state.since or _EPOCH,
    )


def grouped(
    nodes: Iterable[Stopped], open_: Sequence[IncidentState]
) -> tuple[Mapping[str, list[Stopped]], list[IncidentFacts]]:
    """Return the nodes of each open incident by its id, and the facts of new incidents."""
    homes: dict[str, list[Stopped]] = {incident.id: [] for incident in open_}
    fresh: list[Stopped] = []
    for node in sorted(nodes, key=lambda one: (one.since, one.member.name)):
        home = _home(node, open_, homes)
        if home:
            homes[home].append(node)
        else:
            fresh.append(node)
    return homes, [_facts(cluster, code, place) for cluster, code, place in _clusters(fresh)]


def without_resolved(
    nodes: Iterable[Stopped], resolved: Sequence[IncidentState]
) -> tuple[list[Stopped], list[IncidentState]]:
    """Return the nodes that are in none of the incidents which operators have resolved, and those of these incidents
    whose nodes have all left quarantine since.
    """
    left: list[Stopped] = []
    seen: set[str] = set()
    for node in nodes:
        home = next((incident.id for incident in resolved if _was_of(node, incident)), "")
        if home:
            seen.add(home)
        else:
            left.append(node)
    return left, [incident for incident in resolved if incident.id not in seen]


def _was_of(node: Stopped, incident: IncidentState) -> bool:
    """Return whether an incident was about this quarantine of the node, not about an earlier one."""
    facts = incident.facts
    if facts is None or incident.resolved_at is None or node.since > incident.resolved_at:
        return False
    own = node.member.name, node.member.since
    if any(member.active and (member.name, member.since) == own for member in facts.members):
        return True
    return len(facts.members) >= MOST_MEMBERS and _joins(node, incident, ())  # it does not name all of its nodes


def _home(node: Stopped, open_: Sequence[IncidentState], homes: Mapping[str, list[Stopped]]) -> str:
    """Return the id of the open incident that the node belongs to; empty where there is none."""
    for incident in open_:
        facts = incident.facts
        if facts and any(member.active and member.name == node.member.name for member in facts.members):
            return incident.id
    return next((incident.id for incident in open_ if _joins(node, incident, homes[incident.id])), "")


def _joins(node: Stopped, incident: IncidentState, others: Sequence[Stopped]) -> bool:
    facts = incident.facts
    if facts is None:
        return False
    if facts.fault:
        return node.fault == facts.fault
    times = [member.since for member in facts.members if member.since] + [other.since for other in others]
    near = not times or node.since - max(times) <= JOIN
    return near and facts.code in (node.code, MIXED) and facts.place in (node.place, SITE)


Cluster = tuple[list[Stopped], str, str]
"""Nodes, cause and place."""


def _clusters(fresh: Sequence[Stopped]) -> Iterator[Cluster]:
    for fault, found in _by(fresh, lambda node: node.fault).items():
        if fault:
            places = {node.place for node in found}
            yield found, found[0].code, found[0].place if len(places) == 1 else SITE
    for together in _bursts([node for node in fresh if not node.fault]):
        yield from _of_one_time(together)


def _bursts(nodes: Sequence[Stopped]) -> Iterator[list[Stopped]]:
    """Yield the nodes, ordered by time, in groups with gaps of at most `JOIN`."""
    burst: list[Stopped] = []
    for node in nodes:
        if burst and node.since - burst[-1].since > JOIN:
            yield burst
            burst = []
        burst.append(node)
    if burst:
        yield burst


def _of_one_time(nodes: Sequence[Stopped]) -> Iterator[Cluster]:
    by_code = _by(nodes, lambda node: node.code)
    spread = {code: found for code, found in by_code.items() if len({one.rack for one in found} - {""}) >= SPREAD}
    yield from ((found, code, SITE) for code, found in spread.items())
    left = [node for node in nodes if node.code not in spread]
    for rack, there in _by(left, lambda node: node.rack).items():
        yield from _of_one_rack(rack, there)


def _of_one_rack(rack: str, nodes: list[Stopped]) -> Iterator[Cluster]:
    """Yield one cluster where many nodes of a rack have several causes, else one for each cause and place."""
    if rack and len(nodes) >= SPREAD and len({node.code for node in nodes}) > 1:
        yield nodes, MIXED, rack
        return
    for (code, place), found in _by(nodes, lambda node: (node.code, node.place)).items():
        yield found, code, place


def _by(nodes: Iterable[Stopped], key: Callable[[Stopped], K]) -> dict[K, list[Stopped]]:
    groups: dict[K, list[Stopped]] = defaultdict(list)
    for node in nodes:
        groups[key(node)].append(node)
    return groups


def _facts(nodes: Sequence[Stopped], code: str, place: str) -> IncidentFacts:
    members = tuple(node.member for node in nodes)
    return IncidentFacts(
        what=IncidentKind.NODES,
        code=code,
        place=place,
        cause=_cause(members, code, place),
        remedy=members[0].remedy,
        severity=_severity(members),
        fault=nodes[0].fault,
        members=members[:MOST_MEMBERS],
    )


def _cause(members: Sequence[Member], code: str, place: str) -> str:
    if len(members) == 1:
        return f"{members[0].name}: {members[0].cause}"
    where = "in several racks" if place == SITE else f"in {place}"
    known = next((item.description for item in Code if item.value == code), "They have several causes.")
    return f"{len(members)} nodes {where} are in quarantine: {known}"


def _severity(members: Sequence[Member]) -> Severity:
    return Severity.CRITICAL if len(members) >= SPREAD else Severity.WARNING


def merged(facts: IncidentFacts, nodes: Sequence[Stopped]) -> IncidentFacts:
    """Return the facts of an open incident with its nodes as they are now; nodes that left quarantine stay named."""
    now = {node.member.name: node.member for node in nodes}
    members = [
        now.pop(member.name) if member.name in now else replace(member, active=False) for member in facts.members
    ]
    members += now.values()
    active = [member for member in members if member.active]
    return replace(
        facts,
        members=tuple(members[:MOST_MEMBERS]),
        cause=_cause(active, facts.code, facts.place) if active else facts.cause,
        remedy=active[0].remedy if active else facts.remedy,
        severity=_severity(members),
    )
