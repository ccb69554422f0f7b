"""Acts on ports of the fabric: intents and results in the journal's stream `fabric`, and the ports that are disabled.

Subject: the switch port, `GUID/port`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.acts import Act, ActResult, Intent, Intents, PortDetails, with_intent, with_result
from clusterctl.fleet.event import Event, NewEvent, Stream
from clusterctl.fleet.fabric.history import port_name
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Guid, NodeId
from clusterctl.fleet.payloads.node import ActIntended, ActObserved

CLAIM = NodeId("fabric")
"""A run that acts on ports claims this, so that no two runs spend one budget."""
PORT_ACTS = (Act.PORT_DISABLE, Act.PORT_ENABLE)


@dataclass(frozen=True, slots=True)
class DisabledPort:
    """A port that is disabled, or may be.

    peer      the port that it was linked to
    label     its name
    why       the reason
    sure      False where a run ended between its intent and its result: the port may be in either state
    enabling  the last act was to enable it
    gbps      the rate of its link until then, in Gb/s; 0 where it is unknown
    """

    port: PortId
    peer: PortId
    label: str
    why: str
    sure: bool
    enabling: bool = False
    gbps: float = 0.0


def intended(act: Act, out: DisabledPort, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    """Return the event before an act."""
    details = PortDetails(label=out.label, gbps=out.gbps)
    payload = ActIntended(act=act, target=port_name(out.peer), reason=out.why, details=details)
    return NewEvent(Stream.FABRIC, port_name(out.port), payload, evidence)


def observed(act: Act, out: DisabledPort, seen: str, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    """Return the event of a result. `seen`: the port's physical state; after an enable, the proof that it works."""
    return NewEvent(Stream.FABRIC, port_name(out.port), ActObserved(act=act, message=seen), evidence)


def disabled_ports(events: Iterable[Event]) -> tuple[DisabledPort, ...]:
    """Return the fold of the stream's events, in `seq` order (the last of each kind of each port is enough)."""
    ports: dict[str, tuple[ActIntended, Intents]] = {}
    for event in events:
        match event.payload:
            case ActIntended(act=act) as intended_ if act in PORT_ACTS:
                _, intents = ports.get(event.subject, (intended_, ()))
                intent = Intent(act, intended_.target, event.seq, intended_.details)
                ports[event.subject] = (intended_, with_intent(intents, intent))
            case ActObserved(act=act, result=result) if act in PORT_ACTS and event.subject in ports:
                last, intents = ports[event.subject]
                ports[event.subject] = (last, with_result(intents, act, result, event.seq))
    found = (_disabled(subject, last, intents) for subject, (last, intents) in ports.items())
    return tuple(port for port in found if port is not None)


def _disabled(subject: str, last: ActIntended, intents: Intents) -> DisabledPort | None:
    """Return the port as the newest event has it; None where that is the proof that it works after an enable.

    A port may be observed as disabled while an enable is open: the run that enabled it was killed.
    """
    newest = max(intents, key=lambda intent: max(intent.seq, intent.observed))
    enabling, sure = newest.act is Act.PORT_ENABLE, newest.result is ActResult.DONE
    if (sure and enabling) or not isinstance(last.details, PortDetails):
        return None
    details = last.details
    return DisabledPort(_port(subject), _port(last.target), details.label, last.reason, sure, enabling, details.gbps)


def _port(name: str) -> PortId:
    guid, _, number = name.partition("/")
    return PortId(Guid(guid), int(number))
