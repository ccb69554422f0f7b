"""Repairs of links that clusterctl took out of use: reported by operators, or by tickets that were closed."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.fabric.history import port_name
from clusterctl.fleet.payloads.fabric import FabricRepairReported
from clusterctl.fleet.payloads.incidents import TicketSeen
from clusterctl.operations.context import SiteContext
from clusterctl.operations.incidents import acts_on_links
from clusterctl.ports.journal import Journal
from clusterctl.steps.cable.isolation import ports_out


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairedRequest:
    """Ports whose links are repaired, as SWITCH:PORT, and what was done."""

    ports: tuple[str, ...]
    reason: str


def report_repaired(context: SiteContext, request: RepairedRequest) -> tuple[str, ...]:
    """Record that links are repaired, and return their labels: the watch enables and proves them.

    Raise `UsageError` for a port that clusterctl did not disable; nothing is recorded then.
    """
    out = {one.label: one for one in ports_out(context.journal)}
    labels = [f"{device} port {port}" for device, _, port in (text.rpartition(":") for text in request.ports)]
    unknown = [label for label in labels if label not in out]
    if unknown:
        remedy = f"these are: {', '.join(sorted(out)) or 'none'}"
        raise UsageError("clusterctl did not disable this port", where=unknown[0], remedy=remedy)
    events = [
        NewEvent(Stream.FABRIC, port_name(out[label].port), FabricRepairReported(reason=request.reason))
        for label in dict.fromkeys(labels)
    ]
    context.journal.append(events)
    return tuple(dict.fromkeys(labels))


def record_closed_tickets(context: SiteContext) -> tuple[str, ...]:
    """Record a repair for each disabled port whose ticket was closed since it went out; return their labels.

    A ticket that was closed before the port was last disabled proves nothing: it is opened and closed again.
    """
    if not acts_on_links(context.site.settings.fabric.watch):
        return ()
    journal = context.journal
    states = {state.facts.place: state for state in journal.incidents(unfinished=True) if state.facts and state.open}
    found: dict[str, NewEvent] = {}
    for one in ports_out(journal):
        state = states.get(" – ".join(one.ends))
        if state is None or not state.ticket.closed or one.enabling:
            continue
        closed = _last(journal, Stream.INCIDENT, state.id, TicketSeen)
        reported = _last(journal, Stream.FABRIC, port_name(one.port), FabricRepairReported)
        if closed > max(one.seq, reported):
            payload = FabricRepairReported(reason=f"ticket {state.ticket.key} is closed")
            found[one.label] = NewEvent(Stream.FABRIC, port_name(one.port), payload)
    journal.append(list(found.values()))
    return tuple(found)


def _last(journal: Journal, stream: Stream, id_: str, kind: type[Payload]) -> int:
    """Return the number of the last event of that kind; 0 where there is none."""
    numbers = (event.seq for event in journal.history(stream, id_) if isinstance(event.payload, kind))
    return max(numbers, default=0)
