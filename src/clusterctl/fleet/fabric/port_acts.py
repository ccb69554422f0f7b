"""What was done to ports of the fabric: intents and what then was seen, in the journal's stream `fabric`.

Subject: the switch port, `GUID/port`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.acts import Act, PortDetails
from clusterctl.fleet.event import Event, NewEvent, Stream
from clusterctl.fleet.fabric.history import port_name
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Guid, NodeId
from clusterctl.fleet.payloads.node import ActIntended, ActObserved

CLAIM = NodeId("fabric")
"""Who acts on ports claims this, so that no two runs spend one budget."""
PORT_ACTS = (Act.PORT_DISABLE, Act.PORT_ENABLE)


@dataclass(frozen=True, slots=True)
class Out:
    """A port that is disabled, or was meant to be: `peer` is what it led to, `label` its name, `why` the reason, `gbps`
    the rate (Gb/s) that its link had until then, 0 where that is not known.

    `sure` is False where a run ended between its intent and its look: the port may be in either state;
    `enabling` where it was then being enabled.
    """

    port: PortId
    peer: PortId
    label: str
    why: str
    sure: bool
    enabling: bool = False
    gbps: float = 0.0


def intended(act: Act, out: Out, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    details = PortDetails(label=out.label, gbps=out.gbps)
    payload = ActIntended(act=act, target=port_name(out.peer), reason=out.why, details=details)
    return NewEvent(Stream.FABRIC, port_name(out.port), payload, evidence)


def observed(act: Act, out: Out, seen: str, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    """`seen`: the port's physical state, and what proves that it works where it was enabled."""
    return NewEvent(Stream.FABRIC, port_name(out.port), ActObserved(act=act, message=seen), evidence)


def standing(events: Iterable[Event]) -> tuple[Out, ...]:
    """Return the fold of the stream's events, in `seq` order (the last of each kind of each port is enough)."""
    last: dict[str, tuple[ActIntended, bool]] = {}
    for event in events:
        match event.payload:
            case ActIntended(act=act) as intent if act in PORT_ACTS:
                last[event.subject] = (intent, False)
            case ActObserved(act=act) if act in PORT_ACTS and event.subject in last:
                last[event.subject] = (last[event.subject][0], True)
    found = (_out(subject, intent, sure=sure) for subject, (intent, sure) in last.items())
    return tuple(out for out in found if out is not None)


def _out(subject: str, intent: ActIntended, *, sure: bool) -> Out | None:
    """None for a port whose last act was to enable it, and that was seen to be so."""
    enabling = intent.act is Act.PORT_ENABLE
    if (sure and enabling) or not isinstance(intent.details, PortDetails):
        return None
    details = intent.details
    return Out(_port(subject), _port(intent.target), details.label, intent.reason, sure, enabling, details.gbps)


def _port(name: str) -> PortId:
    guid, _, number = name.partition("/")
    return PortId(Guid(guid), int(number))
