"""The same machine with another name, place or address: what changes, and which step must prove the node again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from clusterctl.fleet.acts import Act, ActResult, PlaceDetails
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.permissions import require_no_open_act, require_out_of_pool, require_serial
from clusterctl.fleet.decisions.revalidate import order_event
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Location, RevalidationOrigin, Serial, Stage, Step
from clusterctl.fleet.payloads.decisions import NodeRelocated
from clusterctl.fleet.payloads.node import ActObserved, NodeDescribed
from clusterctl.fleet.state import NodeState, Revalidation


def relocatable(node: NodeState, now: datetime) -> Serial:
    """Return the serial of the node's machine. Raise `UsageError` where its name or place may not change now."""
    serial = require_serial(node)
    require_no_open_act(node, (Act.PLACE_WRITE,))
    if node.hold is not None and node.hold.plan:
        remedy = f"clusterctl maintain status {node.hold.plan} shows when it has finished with this node"
        raise UsageError(f"the plan {node.hold.plan} changes it now, by its name", where=node.name, remedy=remedy)
    remedy = f"let its work end, then clusterctl hold {node.name} --reason '…'"
    require_out_of_pool(node, now, remedy)
    return serial


def before(node: NodeState, *, readdressed: bool) -> PlaceDetails:
    """Return what the node was before its relocation began, also where an earlier run was killed in the middle of it.

    `readdressed`: the site's files give its host another address now.
    """
    begun = node.intent(Act.PLACE_WRITE)
    if begun is not None and begun.open and isinstance(begun.details, PlaceDetails):
        return begun.details
    place = node.location
    return PlaceDetails(name=node.name, bmc=node.bmc, rack=place.rack, unit=place.unit, readdressed=readdressed)


def changes(was: PlaceDetails, now: NodeDescribed) -> tuple[str, ...]:
    """Return what differs, one clause each."""
    places = (Location(was.rack, was.unit), Location(now.rack, now.unit))
    pairs = {"name": (was.name, now.name), "": places, "BMC": (was.bmc, now.bmc)}
    found = tuple(f"{what} {one} → {other}".strip() for what, (one, other) in pairs.items() if one != other)
    return (*found, *(("other addresses of its host",) if was.readdressed else ()))


def first_step(node: NodeState, was: PlaceDetails, now: NodeDescribed) -> Step | None:
    """Return the first step that must prove the node again; None where it has not come to any of them.

    Another BMC address is proven by discover, another address of the host by install, another name is set by
    configure, and another place has other cables.
    """
    touched = min(_touched(was, now), key=list(Step).index, default=None)
    if touched is None:
        return None
    comes_next = node.stopped_at if node.stage is Stage.QUARANTINED else node.next_step
    order = list(Step)
    passed = comes_next is None or order.index(touched) < order.index(comes_next)
    return touched if passed else None


def _touched(was: PlaceDetails, now: NodeDescribed) -> Iterator[Step]:
    if was.bmc != now.bmc:
        yield Step.DISCOVER
    if was.readdressed:
        yield Step.INSTALL
    if was.name != now.name:
        yield Step.CONFIGURE
    if (was.rack, was.unit) != (now.rack, now.unit):
        yield Step.CABLE


def relocated(
    node: NodeState, was: PlaceDetails, now: NodeDescribed, reason: str, evidence: tuple[Digest, ...]
) -> tuple[NewEvent, ...]:
    """Return the events of a relocation whose files are written. `evidence` proves which machine it is.

    History, hold, waivers and repeated failures stay with the node. One in quarantine stays there.
    """
    since = first_step(node, was, now)
    words = ", ".join(changes(was, now))
    payload = NodeRelocated(changes=words, serial=node.serial or "", reason=checked_reason(reason), since=since)
    events = [
        node_event(node.id, ActObserved(act=Act.PLACE_WRITE, result=ActResult.DONE, message=words)),
        node_event(node.id, now),
        node_event(node.id, payload, evidence),
    ]
    if since is not None and node.stage is not Stage.QUARANTINED:
        why = Revalidation(RevalidationOrigin.OPERATOR, f"{words}: {payload.reason}")
        events.append(order_event(node, since, why))
    return tuple(events)
