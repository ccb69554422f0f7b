"""The managers of the fabric, at each pass of its watch: which subnet manager is master, and whether UFM is stale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.cabling.managed_links import compare_model
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.payloads.fabric import FabricMasterSeen
from clusterctl.formats.infiniband.sminfo import SubnetManager, parse_sminfo
from clusterctl.ports import Deadline, Journal, LinkModel
from clusterctl.steps.cable.link_health import UNREADABLE

MASTER = "master"
"""The subject of the events about the master."""
MODEL_S = 120.0


def watch_master(journal: Journal, seen: Fabric | None, evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Write a master subnet manager that is another one than before; return the hand-over as text.

    evidence  of the fabric: it has what `sminfo` printed, where the site names `fabric.sminfo`
    """
    found = next(filter(None, map(_master_of, evidence)), None)
    if found is None or seen is None:
        return ()
    names = (device.description for device in seen.devices.values() if found.lid in device.lids)
    now = FabricMasterSeen(guid=found.guid, lid=found.lid, priority=found.priority, name=next(names, ""))
    last = [event.payload for event in journal.latest(Stream.FABRIC, Kind.FABRIC_MASTER_SEEN)]
    before = last[0] if last and isinstance(last[0], FabricMasterSeen) else None
    if before is not None and before.guid == now.guid:
        return ()
    journal.append([NewEvent(Stream.FABRIC, MASTER, now)])
    if before is None:
        return ()
    return (f"the master was handed over from {before.name or before.guid} to {now.name or now.guid}",)


def _master_of(evidence: Evidence) -> SubnetManager | None:
    if not evidence.content.startswith(b"sminfo:"):
        return None
    try:
        found = parse_sminfo(evidence.content.decode(errors="replace"))
    except ParseError:
        return None
    return found if found.master else None


@dataclass(frozen=True, slots=True)
class ModelReading:
    """`stale`: why the manager's model is not the fabric. `unread`: why it is unknown."""

    stale: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def compared(links: LinkModel | None, seen: Fabric | None, deadline: Deadline) -> ModelReading:
    """Compare the links that the fabric manager has with the fabric; nothing where one of the two is missing."""
    if links is None or seen is None:
        return ModelReading()
    try:
        managed = links.links(deadline.within(MODEL_S)).value
    except UNREADABLE as error:
        return ModelReading(unread=(f"UFM's links: {error}",))
    found = compare_model(managed, seen)
    if not found.stale:
        return ModelReading()
    text = (
        f"UFM's model of the fabric is stale: of {found.links} links between switches it lacks {found.missing}, and "
        f"has {found.gone} that are gone; if the next passes report it, too: clusterctl fabric restart"
    )
    return ModelReading(stale=(text,))
