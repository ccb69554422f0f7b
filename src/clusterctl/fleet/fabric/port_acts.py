"""What was done to ports of the fabric: intents and what then was seen, in the journal's stream `fabric`.

Subject: the switch port, `GUID/port`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.event import Event, Kind, NewEvent
from clusterctl.fleet.fabric.history import STREAM, port_name
from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Guid, NodeId

CLAIM = NodeId("fabric")
"""Who acts on ports claims this, so that no two runs spend one budget."""
DISABLE, ENABLE = "disable", "enable"


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


def intended(act: str, out: Out, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    return _event(Kind.ACT_INTENDED, act, out, {}, evidence)


def observed(act: str, out: Out, seen: str, evidence: tuple[Digest, ...] = ()) -> NewEvent:
    """`seen`: the port's physical state, and what proves it sound where it was enabled."""
    return _event(Kind.ACT_OBSERVED, act, out, {"seen": seen}, evidence)


def standing(events: Iterable[Event]) -> tuple[Out, ...]:
    """The fold of the stream's events, in `seq` order (the last of each kind of each port will do)."""
    last: dict[str, dict[Kind, Event]] = {}
    for event in events:
        if event.kind in (Kind.ACT_INTENDED, Kind.ACT_OBSERVED) and event.data.get("act") in (DISABLE, ENABLE):
            last.setdefault(event.subject, {})[event.kind] = event
    found = (_out(kinds) for kinds in last.values())
    return tuple(out for out in found if out is not None)


def _out(kinds: dict[Kind, Event]) -> Out | None:
    """None for a port whose last act was to enable it, and that was seen to be so."""
    event = max(kinds.values(), key=lambda one: one.seq)
    sure = event.kind is Kind.ACT_OBSERVED
    if sure and event.data["act"] == ENABLE:
        return None
    enabling = event.data["act"] == ENABLE
    label, why = event.data["label"], event.data["why"]
    gbps = float(event.data.get("gbps", 0.0))
    return Out(_port(event.subject), _port(event.data["peer"]), label, why, sure, enabling, gbps)


def _event(kind: Kind, act: str, out: Out, more: dict[str, str], evidence: tuple[Digest, ...]) -> NewEvent:
    data = {"act": act, "peer": port_name(out.peer), "label": out.label, "why": out.why, "gbps": out.gbps, **more}
    return NewEvent(STREAM, port_name(out.port), kind, data, evidence)


def _port(name: str) -> PortId:
    guid, _, number = name.partition("/")
    return PortId(Guid(guid), int(number))
