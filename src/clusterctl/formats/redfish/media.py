"""Virtual media: where an image can be put into a machine, and what is in there (DMTF VirtualMedia)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Resource, Tree, Wanted, normal

_INSERT, _EJECT = "#VirtualMedia.InsertMedia", "#VirtualMedia.EjectMedia"
_DISCS = frozenset({"CD", "DVD"})


@dataclass(frozen=True, slots=True)
class Slot:
    """One virtual drive. `insert` and `eject` are the actions' targets; empty: it is changed by PATCH."""

    path: str
    etag: str
    image: str
    name: str
    inserted: bool
    insert: str
    eject: str

    def holds(self, uri: str) -> bool:
        """Whether this image is in. Some BMCs tell only the name of the file."""
        return self.inserted and (self.image == uri if self.image else self.name == uri.rsplit("/", 1)[-1])

    def __str__(self) -> str:
        return f"{self.path} holds {(self.image or self.name or 'an image') if self.inserted else 'nothing'}"


@dataclass(frozen=True, slots=True)
class Tray:
    """The virtual drives of a machine that take discs."""

    serial: Serial
    slots: tuple[Slot, ...]

    def holding(self, uri: str) -> Slot | None:
        return next((slot for slot in self.slots if slot.holds(uri)), None)

    def free(self) -> Slot:
        """A drive with nothing in it; `EdgeError` naming what is in all of them."""
        found = next((slot for slot in self.slots if not slot.inserted), None)
        if found is None:
            told = "; ".join(map(str, self.slots)) or "it has none"
            raise EdgeError(f"the BMC has no free virtual drive for discs: {told}", remedy="eject what is in it first")
        return found

    def __str__(self) -> str:
        return "virtual media: " + ("; ".join(map(str, self.slots)) or "none")


def read_tray(answers: Answers) -> Tray | Wanted:
    """Virtual media hang below the System on newer BMCs and below its manager on others; the System's go first."""
    tree = Tree(answers)
    try:
        host = system.host_system(tree)
        serial = system.serial_of(tree, host)
        found = _found(tree, host)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    return Tray(serial, tuple(map(_slot, found)))


def insert_bodies(uri: str) -> tuple[Mapping[str, Any], ...]:
    """The parameters of InsertMedia, the likeliest first: only `Image` is required, and some take nothing else; others
    want to be told how to fetch it.
    """
    how = {"TransferProtocolType": uri.partition(":")[0].upper(), "TransferMethod": "Stream"}
    usual = {"Image": uri, "Inserted": True, "WriteProtected": True}
    return ({"Image": uri}, usual, {**usual, **how})


def _found(tree: Tree, host: Resource) -> tuple[Resource, ...]:
    """The drives for discs. Raises what kept the first from being known, where none is known: there may be one."""
    troubles: list[ParseError | EdgeError] = []
    found = _discs(tree, host, troubles) or _of_managers(tree, host, troubles)
    if troubles and not found:
        raise troubles[0]
    return found


def _of_managers(tree: Tree, host: Resource, troubles: list[ParseError | EdgeError]) -> tuple[Resource, ...]:
    managers = tree.all(host.links("Links", "ManagedBy")) or tree.members(tree.root, "Managers")
    return tuple(item for manager in managers for item in _discs(tree, manager, troubles))


def _discs(tree: Tree, holder: Resource, troubles: list[ParseError | EdgeError]) -> tuple[Resource, ...]:
    if not holder.has("VirtualMedia"):
        return ()
    try:
        listed = tree.members(holder, "VirtualMedia")
    except (EdgeError, ParseError) as error:
        troubles.append(error)  # it is linked and not given: there may be others
        return ()
    return tuple(item for item in listed if _takes_discs(item, troubles))


def _takes_discs(item: Resource, troubles: list[ParseError | EdgeError]) -> bool:
    try:
        kinds = item.texts("MediaTypes")
    except ParseError as error:
        troubles.append(error)
        return False
    if not kinds:
        troubles.append(ParseError("the drive does not tell what it takes", where=item.where("MediaTypes")))
    return bool(_DISCS.intersection(kinds))


def _slot(media: Resource) -> Slot:
    image, name = media.text("Image"), media.text("ImageName")
    inserted = media.flag("Inserted")
    return Slot(
        media.path,
        media.text("@odata.etag"),
        image,
        name,
        bool(image or name) if inserted is None else inserted,
        _target(media, _INSERT),
        _target(media, _EJECT),
    )


def _target(media: Resource, action: str) -> str:
    told = media.text("Actions", action, "target")
    return normal(told, media.where("Actions", action, "target")) if told else ""
