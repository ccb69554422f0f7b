"""Acts on ports of the fabric: intents and results in the journal's stream `fabric`, and the ports that are disabled.

Subject: the switch port, `GUID/port`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlace:
    """Where a link is repaired; each is empty where it is unknown.

    peer       the name of the port at the other end
    rack       where the work begins
    serial     of the cable or its ends
    repair     what is to be done
    peer_rack  the rack of the other end
    """

    peer: str = ""
    rack: str = ""
    serial: str = ""
    repair: str = ""
    peer_rack: str = ""


@dataclass(frozen=True, slots=True)
class DisabledPort:
    """A port that is disabled, or may be.

    peer      the port that it was linked to
    label     its name
    why       the reason
    sure      False where a run ended between its intent and its result: the port may be in either state
    enabling  the last act was to enable it
    gbps      the rate of its link until then, in Gb/s; 0 where it is unknown
    place     the other end's name, the rack, the serial of the cable, and what is to be done
    seq       number of the newest event about it; 0: none yet
    """

    port: PortId
    peer: PortId
    label: str
    why: str
    sure: bool
    enabling: bool = False
    gbps: float = 0.0
    place: RepairPlace = field(default_factory=RepairPlace)
    seq: int = 0

    @property
    def ends(self) -> tuple[str, ...]:
        """Return the names of both ends, sorted; of one where the other is unknown."""
        return tuple(sorted(name for name in (self.label, self.place.peer) if name))


def intended(act: Act, out: DisabledPort, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    """Return the event before an act."""
    place = out.place
    details = PortDetails(
        label=out.label,
        gbps=out.gbps,
        peer=place.peer,
        rack=place.rack,
        serial=place.serial,
        repair=place.repair,
        peer_rack=place.peer_rack,
    )
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
    return DisabledPort(
        port=_port(subject),
        peer=_port(last.target),
        label=details.label,
        why=last.reason,
        sure=sure,
        enabling=enabling,
        gbps=details.gbps,
        place=RepairPlace(
            peer=details.peer,
            rack=details.rack,
            serial=details.serial,
            repair=details.repair,
            peer_rack=details.peer_rack,
        ),
        seq=max(newest.seq, newest.observed),
    )


def enabled_since(events: Iterable[Event]) -> dict[PortId, datetime]:
    """Return when the ports were enabled that were disabled before, both ends of each link. Of the events, the last
    intent of each port is enough. What their counters gathered before is of the link as it was.
    """
    found: dict[PortId, datetime] = {}
    for event in events:
        if isinstance(event.payload, ActIntended) and event.payload.act is Act.PORT_ENABLE:
            found |= dict.fromkeys((_port(event.subject), _port(event.payload.target)), event.at)
    return found


def _port(name: str) -> PortId:
    guid, _, number = name.partition("/")
    return PortId(Guid(guid), int(number))
