"""From what is wrong now and the open incidents to the events that make them agree.

The same journal gives the same events: what was written by a run that was killed is found, not written again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.incidents import nodes as node_incidents
from clusterctl.fleet.incidents.incident import (
    IncidentFacts,
    IncidentKind,
    IncidentState,
    Phase,
    Severity,
    incident_id,
)
from clusterctl.fleet.incidents.nodes import Stopped
from clusterctl.fleet.incidents.signals import Signal
from clusterctl.fleet.payloads.incidents import IncidentOpened, IncidentResolved, IncidentUpdated, MessageQueued

Channels = Callable[[IncidentFacts, Phase], Collection[str]]
"""From the facts of an incident and the phase of a message to the channels that are to get it."""


@dataclass(frozen=True, slots=True)
class Route:
    """Which messages go to which channels."""

    channels: tuple[str, ...]
    kinds: frozenset[IncidentKind]
    phases: frozenset[Phase]
    severity: Severity = Severity.WARNING

    def takes(self, facts: IncidentFacts, phase: Phase) -> bool:
        urgent = self.severity is Severity.WARNING or facts.severity is Severity.CRITICAL
        return urgent and facts.what in self.kinds and phase in self.phases


def routed(routes: Iterable[Route]) -> Channels:
    """Return the channels of the routes, each once, in their order."""
    ordered = tuple(routes)

    def channels(facts: IncidentFacts, phase: Phase) -> Collection[str]:
        return tuple(dict.fromkeys(name for route in ordered if route.takes(facts, phase) for name in route.channels))

    return channels


@dataclass(frozen=True, slots=True)
class Seen:
    """What is wrong now.

    nodes    in quarantine; None where the journal's nodes could not be read
    signals  all others
    unknown  kinds of which nothing is known now: their incidents stay as they are
    """

    nodes: Sequence[Stopped] | None
    signals: Sequence[Signal] = ()
    unknown: frozenset[IncidentKind] = frozenset()


def derive(seen: Seen, incidents: Sequence[IncidentState], channels: Channels) -> tuple[NewEvent, ...]:
    """Return the events that bring the open incidents to what is wrong now, each with its messages.

    incidents  the open ones, those that operators have resolved before their end, and any with the id of a new one
    """
    lasting = [incident for incident in incidents if incident.open or incident.still_seen]
    known = {incident.id for incident in incidents}
    changes = [*_of_nodes(seen, lasting), *_of_signals(seen, lasting)]
    events: list[NewEvent] = []
    for change in changes:
        if change.before is None and change.id in known:
            continue
        events += _written(change, channels)
        known.add(change.id)
    return tuple(events)


@dataclass(frozen=True, slots=True)
class _Change:
    """What becomes of one incident. `facts` None: it is resolved. `quiet`: no message is worth it."""

    id: str
    before: IncidentState | None
    facts: IncidentFacts | None
    text: str = ""
    quiet: bool = False


def _written(change: _Change, channels: Channels) -> Iterator[NewEvent]:
    before, facts = change.before, change.facts
    payload: Payload
    if facts is not None and (before is None or not before.open):
        phase, payload = Phase.OPENED, IncidentOpened(facts=facts)
    elif facts is not None:
        phase, payload = Phase.UPDATED, IncidentUpdated(facts=facts, change=change.text)
    elif before is not None and before.facts is not None:
        phase, facts, payload = Phase.RESOLVED, before.facts, IncidentResolved(reason=change.text)
    else:
        return
    yield NewEvent(Stream.INCIDENT, change.id, payload)
    revision = (before.revision if before else 0) + 1
    for channel in () if change.quiet else channels(facts, phase):
        yield NewEvent(Stream.INCIDENT, change.id, MessageQueued(channel=channel, revision=revision))


def _of_nodes(seen: Seen, lasting: Sequence[IncidentState]) -> Iterator[_Change]:
    if seen.nodes is None:
        return
    known = [incident for incident in lasting if incident.facts and incident.facts.what is IncidentKind.NODES]
    mine = [incident for incident in known if incident.open]
    nodes, over = node_incidents.without_resolved(seen.nodes, [incident for incident in known if not incident.open])
    yield from map(_over, over)
    homes, fresh = node_incidents.grouped(nodes, mine)
    for incident in mine:
        if incident.facts is not None:
            yield from _node_change(incident, incident.facts, homes[incident.id])
    for facts in fresh:
        first = facts.members[0]
        anchor = f"{first.name} {first.since.isoformat() if first.since else ''}"
        yield _Change(incident_id(facts, anchor), None, facts)


def _node_change(incident: IncidentState, before: IncidentFacts, nodes: Sequence[Stopped]) -> Iterator[_Change]:
    facts = node_incidents.merged(before, nodes)
    if not facts.active:
        names = [member.name for member in before.active]
        yield _Change(incident.id, incident, None, f"no longer in quarantine: {_listed(names)}")
    elif facts != before:
        yield _Change(incident.id, incident, facts, *_difference(before, facts))


def _over(incident: IncidentState) -> _Change:
    """Return the end of what an operator has resolved before: it is no news."""
    return _Change(incident.id, incident, None, _NOT_SEEN, quiet=True)


_NOT_SEEN = "it is not seen any more"


def _of_signals(seen: Seen, lasting: Sequence[IncidentState]) -> Iterator[_Change]:
    signals = {signal.facts.identity: signal for signal in seen.signals}
    skipped = {IncidentKind.NODES, *seen.unknown}
    for incident in sorted(lasting, key=lambda one: not one.open):
        facts = incident.facts
        if facts is None or facts.what in skipped:
            continue
        signal = signals.pop(facts.identity, None)
        if signal is None:
            yield _Change(incident.id, incident, None, _NOT_SEEN) if incident.open else _over(incident)
            continue
        now = _with_former(facts, signal.facts)
        text, quiet = _difference(facts, now)
        if now != facts and (incident.open or not quiet):
            yield _Change(incident.id, incident, now, text, quiet)
    for signal in signals.values():
        if signal.facts.what not in skipped:
            yield _Change(incident_id(signal.facts, signal.anchor), None, signal.facts)


def _with_former(before: IncidentFacts, now: IncidentFacts) -> IncidentFacts:
    """Return what is known now; members that are healthy again stay named, and each member keeps its first time."""
    since = {member.name: member.since for member in before.members if member.active}
    members = [replace(member, since=since.get(member.name, member.since)) for member in now.members]
    names = {member.name for member in members}
    members += [replace(member, active=False) for member in before.members if member.name not in names]
    return replace(now, members=tuple(members))


def _difference(before: IncidentFacts, now: IncidentFacts) -> tuple[str, bool]:
    """Return what has changed as text, and whether it is no more than members that are healthy again."""
    was, is_ = _active_names(before), _active_names(now)
    new = [name for name in is_ if name not in was]
    gone = [name for name in was if name not in is_]
    parts = [f"new: {_listed(new)}"] * bool(new) + [f"no longer: {_listed(gone)}"] * bool(gone)
    if not parts:
        parts = ["severity" if before.severity is not now.severity else "details"]
    graver = now.severity is Severity.CRITICAL and before.severity is not now.severity
    return "; ".join(parts), not (new or graver)


def _active_names(facts: IncidentFacts) -> dict[str, None]:
    """Return the names of the active members in their order."""
    return dict.fromkeys(member.name for member in facts.active)


_LISTED = 10


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
