"""Drives.

They hang below the system's storage, below a chassis (Supermicro: its Drives collection stays empty, its links do
not), or below both; they are the same drive where path or serial is the same. Dell leaves an NVMe drive's durable name
null, so that the serial is the only key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Drive
from clusterctl.formats.redfish.parts import RedfishPart, by_slot, comparable, merged
from clusterctl.formats.redfish.system import chassis, garbled, host_first, host_system, programmed, well
from clusterctl.formats.redfish.tree import ROOT, RedfishTree, Resource

_WORLD_WIDE = frozenset({"NAA", "EUI", "NGUID"})


def drives(tree: RedfishTree) -> tuple[Drive, ...]:
    """Return all drives once, by slot."""
    found: dict[str, Drive] = {}
    controllers = _controllers(tree)
    items = tree.kept(drive_resources(tree), comparable)
    of_systems = [item for item in items if item.path.startswith(f"{ROOT}/Systems/")]
    of_chassis = [item for item in items if item not in of_systems]
    for part in merged([of_systems, of_chassis]):
        if (drive := tree.attempt(partial(_drive, part, controllers))) is not None:
            found.setdefault(drive.serial or part.resources[0].path, drive)
    if not found and tree.incomplete():
        raise ParseError("no drive is among what could be read", where=f"{ROOT}/Systems Storage")
    return by_slot(found.values())


def _controllers(tree: RedfishTree) -> dict[str, str]:
    """Return id, name and models of the storage that lists a drive, as far as known, by the drive's path."""
    found: dict[str, str] = {}
    for named in tree.kept(chain.from_iterable(tree.readable_members(_holders(tree), "Storage")), _named):
        found.update(named)
    return found


def _named(storage: Resource) -> dict[str, str]:
    """Return the storage's own words by the path of each of its drives."""
    models = [text for one in storage.each("StorageControllers") for text in (one.text("Model"), one.text("Name"))]
    words = dict.fromkeys(word for word in (storage.id, storage.text("Name"), *models) if word)
    return dict.fromkeys(storage.references("Drives"), " ".join(words))


def _holders(tree: RedfishTree) -> list[Resource]:
    return [one for one in host_first(tree) if one.has("Storage")]


def drive_resources(tree: RedfishTree) -> list[Resource]:
    """Return the resources of all present drives, before anything is read of them."""
    holders = _holders(tree)
    bays = [one for one in chassis(tree) if one.has("Drives") or one.has("Links", "Drives")]
    if not holders and not bays:
        raise ParseError("the link is missing", where=host_system(tree).where("Storage"))
    linked = tree.readable(list(_drive_paths(tree, holders, bays)))
    found = {item.path: item for item in (*linked, *tree.present(bays, "Drives"))}
    return list(tree.kept(found.values(), lambda item: None if item.absent else item))


def _drive_paths(tree: RedfishTree, holders: Iterable[Resource], bays: Iterable[Resource]) -> Iterator[str]:
    """Yield the paths that storages and chassis link to."""
    for storage in chain.from_iterable(tree.readable_members(holders, "Storage")):
        yield from tree.attempt(partial(_linked, storage)) or ()
    for bay in bays:
        yield from tree.attempt(partial(bay.links, "Links", "Drives")) or ()


def _linked(storage: Resource) -> tuple[str, ...]:
    storage.value("Status", "State")  # a storage whose state is garbled may have more drives than it lists
    if not storage.has("Drives"):
        raise ParseError("the list is missing", where=storage.where("Drives"))
    return storage.links("Drives")


def _drive(part: RedfishPart, controllers: Mapping[str, str]) -> Drive:
    item = part.resources[0]
    healthy = _healthy_by_all(part)
    size = part.first("CapacityBytes").whole("CapacityBytes")
    if size is None and healthy is not False:
        raise ParseError("the BMC does not report the size of the drive", where=item.where("CapacityBytes"))
    return Drive(
        slot=item.text("PhysicalLocation", "PartLocation", "ServiceLabel") or item.id,
        model=_model(part),
        size_bytes=size or 0,
        serial=part.serial,
        protocol=part.first("Protocol").text("Protocol"),
        healthy=healthy,
        wwn=next((name for one in part.resources if (name := _world_wide_name(one))), ""),
        controller=next((words for one in part.resources if (words := controllers.get(one.path))), ""),
    )


def _healthy_by_all(part: RedfishPart) -> bool | None:
    """Return False where any resource reports so; None where none reports it."""
    reported = [found for one in part.resources if (found := _healthy(one)) is not None]
    return all(reported) if reported else None


def _model(part: RedfishPart) -> str:
    model = part.first("Model").text("Model")
    return "" if garbled(model) else model


def _world_wide_name(item: Resource) -> str:
    """Return the first durable name that a host's kernel has too (DMTF Resource, DurableNameFormat), else nothing."""
    names = ((name.text("DurableNameFormat"), name.text("DurableName")) for name in item.each("Identifiers"))
    return next((name for form, name in names if form in _WORLD_WIDE and programmed(name)), "")


def _healthy(item: Resource) -> bool | None:
    """Return whether the drive is healthy; the flag of a predicted failure may be blank, null or a word."""
    flag = item.value("FailurePredicted")
    predicted = flag is True or (isinstance(flag, str) and flag.strip().lower() in ("true", "yes"))
    return False if predicted else well(item)
