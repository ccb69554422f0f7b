"""Incidents that an operator ends by hand: a risk that is taken, a repair that waits, an alert that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.incidents.incident import Phase
from clusterctl.fleet.payloads.incidents import IncidentResolved, MessageQueued
from clusterctl.operations import notify
from clusterctl.operations.context import SiteContext
from clusterctl.operations.incidents import PATIENCE_S, ListedIncident, alone, channels_of, named
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result
from clusterctl.ports import Deadline

NAME = "incident resolve"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveRequest:
    """`incidents`: ids, or how they begin."""

    incidents: tuple[str, ...]
    reason: str


def preview(context: SiteContext, request: ResolveRequest) -> Preview:
    """Return which incidents are resolved. Raise `UsageError` where one is unknown, or is resolved already."""
    return _preview(_open(context, request), request)


def run(context: SiteContext, request: ResolveRequest, control: Control) -> Result:
    """Write the end of the incidents with its messages, then send what is due."""
    with alone(context, Deadline.after(PATIENCE_S)):
        found = _open(context, request)
        control.require(_preview(found, request))
        reason, channels = checked_reason(request.reason), channels_of(context)
        events: list[NewEvent] = []
        for one in found:
            events.append(NewEvent(Stream.INCIDENT, one.state.id, IncidentResolved(reason=reason, by_hand=True)))
            for channel in channels(one.facts, Phase.RESOLVED):
                queued = MessageQueued(channel=channel, revision=one.state.revision + 1)
                events.append(NewEvent(Stream.INCIDENT, one.state.id, queued))
        context.journal.append(events)
    notify.after_run(context)
    return Result(operation=NAME, outcomes=tuple(Outcome(node=one.state.id, text="resolved") for one in found))


def _open(context: SiteContext, request: ResolveRequest) -> Sequence[ListedIncident]:
    """Return the incidents of a request, each once, as they are now."""
    checked_reason(request.reason)
    found = {one.state.id: one for one in (named(context, name) for name in request.incidents)}
    for one in found.values():
        if not one.state.open:
            remedy = f"clusterctl incident show {one.state.id} prints who resolved it, and why"
            raise UsageError("the incident is resolved already", where=one.state.id, remedy=remedy)
    return tuple(found.values())


def _preview(found: Sequence[ListedIncident], request: ResolveRequest) -> Preview:
    effects = tuple(Effect(node=one.state.id, text=f"resolved: {one.facts.cause}") for one in found)
    warning = "what it is about is not repaired by this: no new incident is opened until it is gone and comes back"
    shown = Preview(operation=NAME, question="Resolve?", effects=effects, warnings=(warning,))
    return shown.of(request)
