"""Drives.

They hang below the system's storage, below a chassis (Supermicro: its Drives collection stays empty, its links do
not), or below both; they are the same drive where path or serial is the same. Dell leaves an NVMe drive's durable name
null, so that the serial is the only key.
"""

from __future__ import annotations

from functools import partial
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Drive
from clusterctl.formats.redfish.system import chassis, host_first, host_system, programmed, serial_number, well
from clusterctl.formats.redfish.tree import ROOT, Resource, Tree

_WORLD_WIDE = frozenset({"NAA", "EUI", "NGUID"})


def drives(tree: Tree) -> tuple[Drive, ...]:
    """Return all drives once, by slot."""
    found: dict[str, Drive] = {}
    controllers = _controllers(tree)
    for item in drive_resources(tree):
        if (drive := tree.attempt(partial(_drive, item, controllers.get(item.path, "")))) is not None:
            found.setdefault(drive.serial or item.path, drive)
    if not found and tree.incomplete():
        raise ParseError("no drive is among what could be read", where=f"{ROOT}/Systems Storage")
    return tuple(sorted(found.values(), key=lambda drive: natural_key(drive.slot)))


def _controllers(tree: Tree) -> dict[str, str]:
    """Return by the drive's path the id and name of the storage that lists it; what it does not tell is left out."""
    found: dict[str, str] = {}
    holders = [one for one in host_first(tree) if one.has("Storage")]
    for storage in chain.from_iterable(tree.readable_members(holders, "Storage")):
        models = [text for one in storage.each("StorageControllers") for text in (one.text("Model"), one.text("Name"))]
        words = dict.fromkeys(word for word in (storage.id, storage.text("Name"), *models) if word)
        found.update(dict.fromkeys(storage.references("Drives"), " ".join(words)))
    return found


def drive_resources(tree: Tree) -> list[Resource]:
    """Return the resources of all drives that are there, before anything is read of them."""
    holders = [one for one in host_first(tree) if one.has("Storage")]
    bays = [one for one in chassis(tree) if one.has("Drives") or one.has("Links", "Drives")]
    if not holders and not bays:
        raise ParseError("the link is missing", where=host_system(tree).where("Storage"))
    storages = list(chain.from_iterable(tree.readable_members(holders, "Storage")))
    linked: list[str] = []
    for storage in storages:
        linked += tree.attempt(partial(_linked, storage)) or ()
    linked += [path for one in bays for path in tree.attempt(partial(one.links, "Links", "Drives")) or ()]
    listed = tree.readable_members((one for one in bays if one.has("Drives")), "Drives")
    found = {item.path: item for item in chain(tree.readable(linked), *listed)}
    return [item for item in found.values() if not item.absent]


def _linked(storage: Resource) -> tuple[str, ...]:
    if not storage.has("Drives"):
        raise ParseError("the list is missing", where=storage.where("Drives"))
    return storage.links("Drives")


def _drive(item: Resource, controller: str) -> Drive:
    healthy = _healthy(item)
    size = item.whole("CapacityBytes")
    if size is None and healthy is not False:
        raise ParseError("the drive does not tell its size", where=item.where("CapacityBytes"))
    return Drive(
        slot=item.text("PhysicalLocation", "PartLocation", "ServiceLabel") or item.id,
        model=item.text("Model"),
        size_bytes=size or 0,
        serial=serial_number(item),
        protocol=item.text("Protocol"),
        healthy=healthy,
        wwn=_world_wide_name(item),
        controller=controller,
    )


def _world_wide_name(item: Resource) -> str:
    """The first durable name that a host's kernel tells too (DMTF Resource, DurableNameFormat); empty where none is."""
    names = ((name.text("DurableNameFormat"), name.text("DurableName")) for name in item.each("Identifiers"))
    return next((told for form, told in names if form in _WORLD_WIDE and programmed(told)), "")


def _healthy(item: Resource) -> bool | None:
    """Return whether the drive is well; some BMCs write blank, null or a word into the flag of a predicted failure."""
    told = item.value("FailurePredicted")
    predicted = told is True or (isinstance(told, str) and told.strip().lower() in ("true", "yes"))
    return False if predicted else well(item)
