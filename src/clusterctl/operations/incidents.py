"""Incidents: derived from the journal after each run and by a timer; listed and shown.

What happens to an incident is written in one transaction with the messages that the site's routes want about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.fabric.port_acts import DisabledPort
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.incidents.derive import Channels, Route, Seen, derive, routed
from clusterctl.fleet.incidents.fold import fold
from clusterctl.fleet.incidents.incident import IncidentFacts, IncidentKind, IncidentState, Phase, Severity
from clusterctl.fleet.incidents.nodes import Stopped, stopped
from clusterctl.fleet.incidents.signals import (
    SAME_AS_LINKS,
    Nights,
    Signal,
    Trouble,
    alert_signals,
    fault_signals,
    link_signals,
    trouble_signals,
    watched_links,
)
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.payloads.hardware import FabricFaultSeen, FabricLinksJudged
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl.operations.site_facts import free_space
from clusterctl.ports import Deadline
from clusterctl.site.ufm import WatchSettings
from clusterctl.steps.cable.isolation import ports_out
from clusterctl.steps.executor.lease import sole_claim

CLAIM = NodeId("incidents")
"""Two processes that derive at the same moment would each open the same incident."""
LEAST_FREE = 1 << 30
"""Bytes: below this the journal's disk is an incident."""
DISK_FULL = "disk_nearly_full"
JOURNAL_DAMAGED = "journal_damaged"
PATIENCE_S = 60.0
"""Seconds for which another process may hold the incidents: the page on a busy machine, or a run at its end."""
_LOOK_S = 0.5
_NIGHTS = 4
"""So many times the site's `alarm_hours`, nights are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentUpdate:
    """Ids of the incidents that an update has opened, changed and resolved, and how many are open."""

    opened: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    resolved: tuple[str, ...] = ()
    open: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedIncident:
    """An incident with its facts."""

    state: IncidentState
    facts: IncidentFacts


def update(context: SiteContext, deadline: Deadline | None = None) -> IncidentUpdate:
    """Bring the incidents to what the journal shows now. Interrupted at any point, the next call goes on.

    Raise `UsageError` where another process does the same and does not finish before the deadline: `PATIENCE_S` from
    now by default.
    """
    with alone(context, deadline or Deadline.after(PATIENCE_S)):
        now = CLOCK.now()
        known = context.journal.incidents(unfinished=True)
        events = derive(look(context, known, now), known, channels_of(context))
        if events:
            context.journal.append(events)
    written: dict[Kind, list[str]] = {}
    for event in events:
        written.setdefault(event.kind, []).append(event.subject)
    were_open = {state.id for state in known if state.open}
    opened = written.get(Kind.INCIDENT_OPENED, [])
    resolved = [one for one in written.get(Kind.INCIDENT_RESOLVED, []) if one in were_open]
    return IncidentUpdate(
        opened=tuple(opened),
        updated=tuple(written.get(Kind.INCIDENT_UPDATED, [])),
        resolved=tuple(resolved),
        open=len(were_open) + len(opened) - len(resolved),
    )


def current(context: SiteContext, incident: str) -> IncidentState:
    """Return an incident as the journal has it in this moment."""
    return fold(context.journal.history(Stream.INCIDENT, incident), incident)


def listed(context: SiteContext, *, resolved: bool = False) -> tuple[ListedIncident, ...]:
    """Return the open incidents, the newest first; `resolved`: those that are resolved as well."""
    states = reversed(context.journal.incidents(unfinished=not resolved))
    return tuple(_listed(states, resolved=resolved))


def _listed(states: Iterator[IncidentState], *, resolved: bool) -> Iterator[ListedIncident]:
    for state in states:
        if state.facts is not None and (state.open or resolved):
            yield ListedIncident(state=state, facts=state.facts)


def named(context: SiteContext, name: str) -> ListedIncident:
    """Return the incident whose id begins with `name`, with or without `inc-`. Raise `UsageError` where none does, or
    several do.
    """
    wanted = name if name.startswith("inc-") else f"inc-{name}"
    found = [one for one in listed(context, resolved=True) if one.state.id.startswith(wanted)]
    exact = [one for one in found if one.state.id == wanted]
    if len(exact or found) == 1:
        return (exact or found)[0]
    message = f"{len(found)} incidents begin with {name!r}" if found else f"there is no incident {name!r}"
    raise UsageError(message, where="INCIDENT", remedy="clusterctl incident list --all prints their ids")


def history(context: SiteContext, incident: str) -> tuple[Event, ...]:
    """Return the events of an incident, oldest first."""
    return tuple(context.journal.history(Stream.INCIDENT, incident))


def look(context: SiteContext, known: Sequence[IncidentState], now: datetime) -> Seen:
    """Return what is wrong now. What cannot be read of a damaged journal is unknown, and an incident itself."""
    troubles = list(_disk(context))
    try:
        summaries = context.journal.summaries()
        nodes = _stopped(context, summaries)
        signals = list(_signals(context, summaries, [*_faults_of(nodes), *_faults_known(known)], now))
    except EnvironmentBrokenError as error:
        troubles.append(
            Trouble(code=JOURNAL_DAMAGED, cause=error.message, remedy=error.remedy, where=error.where or "journal")
        )
        kinds = frozenset(IncidentKind) - {IncidentKind.CONTROLLER}
        return Seen(None, tuple(trouble_signals(troubles, now)), kinds)
    unknown = frozenset[IncidentKind]() if _links_known(context) else frozenset({IncidentKind.LINKS})
    return Seen(nodes, (*signals, *trouble_signals(troubles, now)), unknown)


def _stopped(context: SiteContext, summaries: Sequence[NodeSummary]) -> list[Stopped]:
    """Return the nodes in quarantine; their states are read one by one: most of a fleet is fine."""
    bad = [node for node in summaries if node.stage is Stage.QUARANTINED]
    found = (stopped(context.journal.state(node.id)) for node in bad)
    return [one for one in found if one is not None]


def _faults_of(nodes: Sequence[Stopped]) -> Iterator[str]:
    return (node.fault for node in nodes if node.fault)


def _faults_known(known: Sequence[IncidentState]) -> Iterator[str]:
    """Yield the faults of the open incidents of nodes."""
    for state in known:
        if state.open and state.facts is not None and state.facts.what is IncidentKind.NODES and state.facts.fault:
            yield state.facts.fault


def _signals(
    context: SiteContext, summaries: Sequence[NodeSummary], faults: Sequence[str], now: datetime
) -> Iterator[Signal]:
    out = ports_out(context.journal)
    yield from _link_signals(context, out)
    yield from _fault_signals(context, out, frozenset(faults))
    nights = _nights(context, now)
    if nights is not None:
        yield from nights.signals({node.name: node for node in summaries})
    repeated = SAME_AS_LINKS if _last_judgement(context) is not None else frozenset[str]()
    yield from alert_signals(context.journal.latest(Stream.ALERT, Kind.ALERT_RECEIVED), repeated, now)


def _link_signals(context: SiteContext, out: Sequence[DisabledPort]) -> Iterator[Signal]:
    judged = _last_judgement(context)
    if acts_on_links(context.site.settings.fabric.watch):
        yield from watched_links(judged, out)
    elif judged is not None and isinstance(judged.payload, FabricLinksJudged):
        yield from link_signals(judged, judged.payload)


def _fault_signals(context: SiteContext, out: Sequence[DisabledPort], known: Collection[str]) -> Iterator[Signal]:
    """Yield the fabric's faults, without those of links that are out of use. `known`: those with incidents already."""
    anchors = {
        event.payload.fault.subject: str(event.seq)
        for event in context.journal.latest(Stream.FABRIC, Kind.FABRIC_FAULT_SEEN)
        if isinstance(event.payload, FabricFaultSeen) and event.payload.fault is not None
    }
    own = [{one.label, one.place.peer} for one in out]
    others = [fault for fault in context.faults() if not any(set(fault.subjects) <= ends for ends in own)]
    yield from fault_signals(others, anchors, known)


def acts_on_links(watch: WatchSettings | None) -> bool:
    """Return whether the site's watch of the fabric disables bad links: each has an incident of its own then."""
    return watch is not None and watch.act


def _last_judgement(context: SiteContext) -> Event | None:
    events = list(context.journal.latest(Stream.FABRIC, Kind.FABRIC_LINKS_JUDGED))
    return events[-1] if events else None


def _links_known(context: SiteContext) -> bool:
    """Return whether the last judgement of the links measured them: one that did not changes nothing."""
    judged = _last_judgement(context)
    payload = judged.payload if judged is not None else None
    return not isinstance(payload, FabricLinksJudged) or payload.verdict != Verdict.INCONCLUSIVE.value


def _nights(context: SiteContext, now: datetime) -> Nights | None:
    """Return the last nights; None where the site has none."""
    settings = context.site.settings.nightly
    if settings is None:
        return None
    alarm = timedelta(hours=settings.alarm_hours)
    kinds = (Kind.NIGHT_STARTED, Kind.NIGHT_ENDED)
    events = list(context.journal.recent(kinds, now - _NIGHTS * alarm))
    if not any(event.kind is Kind.NIGHT_ENDED for event in events):
        events = sorted(
            (event for kind in kinds for event in context.journal.latest(Stream.RUN, kind)), key=lambda one: one.seq
        )
    started = [event for event in events if event.kind is Kind.NIGHT_STARTED]
    ended = [event for event in events if event.kind is Kind.NIGHT_ENDED]
    return Nights(alarm, now, started, ended)


def _disk(context: SiteContext) -> Iterator[Trouble]:
    free = free_space(context.site)
    if free < LEAST_FREE:
        yield Trouble(
            code=DISK_FULL,
            cause=f"the disk of the site's state has {free >> 20} MiB left",
            remedy="make room: clusterctl journal compact removes evidence that no event names",
            where=str(context.site.folder / "state"),
        )


def channels_of(context: SiteContext) -> Channels:
    """Return the site's routes; a site without them has incidents and no messages."""
    settings = context.site.settings.notify
    routes = settings.routes if settings is not None else ()
    return routed(
        Route(
            channels=route.to,
            kinds=frozenset(map(IncidentKind, route.incidents)),
            phases=frozenset(map(Phase, route.on)),
            severity=Severity(route.severity),
        )
        for route in routes
    )


@contextmanager
def alone(context: SiteContext, deadline: Deadline) -> Iterator[None]:
    """Claim the incidents; wait until the deadline for another process that has them. They are asked for at least once.

    By the deadline's timer, not by stamina: its time-out of 0 seconds means that there is none.
    """
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(sole_claim(context.journal, CLAIM, context.run))
                break
            except UsageError:
                if deadline.remaining <= 0 or deadline.cancelled.is_set():
                    raise
            deadline.timer.wait(deadline.cancelled, min(_LOOK_S, deadline.remaining))
        yield


def by_channel(state: IncidentState) -> Mapping[str, str]:
    """Return, by channel, what became of the last message about an incident, as text."""
    found: dict[str, str] = {}
    for channel, delivery in state.deliveries.items():
        if not delivery.pending and not delivery.given_up:
            found[channel] = f"message {delivery.sent} sent"
        elif delivery.given_up:
            found[channel] = f"given up after {delivery.attempts} attempts: {delivery.failure}"
        else:
            tried = f", {delivery.attempts} attempts: {delivery.failure or 'no result'}" if delivery.attempts else ""
            found[channel] = f"message {delivery.wanted} to be sent{tried}"
    return found
