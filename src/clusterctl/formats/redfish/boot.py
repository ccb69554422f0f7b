"""From where a machine boots: what its BMC shows, and what to ask it for (DMTF ComputerSystem, object `Boot`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource, normal

TARGETS: Mapping[BootSource, tuple[str, ...]] = {
    BootSource.PXE: ("Pxe",),
    BootSource.UEFI_HTTP: ("UefiHttp",),
    BootSource.DISK: ("Hdd",),
    BootSource.CD: ("Cd", "UsbCd"),
}
"""`BootSourceOverrideTarget` of each source, the usual one first."""
ENABLED, MODE, TARGET, URI = (
    "BootSourceOverrideEnabled",
    "BootSourceOverrideMode",
    "BootSourceOverrideTarget",
    "HttpBootUri",
)
UEFI, ONCE = "UEFI", "Once"


@dataclass(frozen=True, slots=True)
class Override:
    """The fields of `Boot` about the next boot; empty where the BMC does not report them."""

    target: str
    enabled: str
    mode: str
    uri: str

    def __str__(self) -> str:
        fields = {"target": self.target, "enabled": self.enabled, "mode": self.mode, "URI": self.uri}
        return "boot override " + (
            ", ".join(f"{name} {value}" for name, value in fields.items() if value) or "not reported"
        )

    def gives(self, wish: BootOnce) -> bool:
        """Return whether the next boot will be the wished one. A mode that the BMC does not report is not wrong."""
        right = self.target in TARGETS[wish.source] and self.enabled == ONCE and self.mode in (UEFI, "")
        return right and (not wish.uri or self.uri == wish.uri)


@dataclass(frozen=True, slots=True)
class BootControl:
    """`etags` has, by path, what takes changes: the settings object of the System first where it has one with a `Boot`
    in it, then the System. `shown` are the overrides that they report; `boot` is the object of the first.
    """

    serial: Serial
    etags: Mapping[str, str]
    boot: Mapping[str, Any]
    shown: tuple[Override, ...]
    allowed: frozenset[str]
    manager: str | None

    def gives(self, wish: BootOnce) -> bool:
        """Return whether the machine, or what it will take over at its next boot, shows what was wished."""
        return any(override.gives(wish) for override in self.shown)

    def target(self, source: BootSource) -> str:
        """Return the BMC's name of the source; raise `EdgeError` where it has none."""
        found = next((name for name in TARGETS[source] if not self.allowed or name in self.allowed), None)
        if found is None:
            raise EdgeError(
                f"the BMC boots from {', '.join(sorted(self.allowed))}, not from {source.value}",
                where=next(iter(self.etags)),
                remedy="choose another way to boot, or switch it on in the BIOS",
            )
        return found


def read_boot(answers: Answers) -> BootControl | ReadRequest:
    """Return the boot settings. Raises `ParseError` or `EdgeError` where the machine or its boot is not reported."""
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        serial = serial_of(tree, host)
        settings = settings_of(tree, host)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    places = (host,) if settings is None else (settings, host)
    allowed = [place.texts("Boot", f"{TARGET}@Redfish.AllowableValues") for place in places]
    managers = host.links("Links", "ManagedBy")
    return BootControl(
        serial=serial,
        etags={place.path: place.text("@odata.etag") for place in places},
        boot=_boot(places[0]),
        shown=tuple(_override(place) for place in places),
        allowed=frozenset(next((names for names in allowed if names), ())),
        manager=managers[0] if managers else None,
    )


def bodies(control: BootControl, wish: BootOnce, *, whole: bool) -> tuple[Mapping[str, Any], ...]:
    """Return the bodies to PATCH, the likeliest first: with its mode, for without it some fall back to Legacy; without,
    where the mode cannot be written; and with all that `Boot` holds, first where `whole`.
    """
    usual = {TARGET: control.target(wish.source), ENABLED: ONCE, MODE: UEFI}
    if wish.uri:
        usual[URI] = wish.uri
    without_mode = {key: value for key, value in usual.items() if key != MODE}
    full = {**_writable(control.boot), **usual}
    order = (full, usual, without_mode) if whole else (usual, without_mode, full)
    return tuple({"Boot": body} for body in order)


def settings_of(tree: RedfishTree, host: Resource) -> Resource | None:
    """Return the settings object of the System (`@Redfish.Settings`), where it exists and takes a `Boot`."""
    path = host.link("@Redfish.Settings", "SettingsObject")
    if path is None:
        return None
    try:
        found = tree.get(path)
    except EdgeError:
        return None  # it is named and not there: the System takes the changes itself
    return found if found.has("Boot") else None


def _boot(place: Resource) -> Mapping[str, Any]:
    found = place.value("Boot")
    if not isinstance(found, Mapping):
        raise ParseError("the BMC does not report how the machine boots", where=place.where("Boot"))
    return found


def _override(shown: Resource) -> Override:
    return Override(*(shown.text("Boot", key) for key in (TARGET, ENABLED, MODE, URI)))


def _writable(boot: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is no annotation, no link and not null."""
    return {
        key: value
        for key, value in boot.items()
        if "@" not in key and value is not None and not isinstance(value, Mapping)
    }


_INSERT, _EJECT = "#VirtualMedia.InsertMedia", "#VirtualMedia.EjectMedia"
_DISCS = frozenset({"CD", "DVD"})


@dataclass(frozen=True, slots=True)
class BootSlot:
    """One virtual drive. `insert` and `eject` are the actions' targets; empty: it is changed by PATCH."""

    path: str
    etag: str
    image: str
    name: str
    inserted: bool
    insert: str
    eject: str

    def holds(self, uri: str) -> bool:
        """Return whether this image is inserted. Some BMCs report only the name of the file."""
        return self.inserted and (self.image == uri if self.image else self.name == uri.rsplit("/", 1)[-1])

    def __str__(self) -> str:
        return f"{self.path} holds {(self.image or self.name or 'an image') if self.inserted else 'nothing'}"


@dataclass(frozen=True, slots=True)
class Tray:
    """The virtual drives of a machine that take discs."""

    serial: Serial
    slots: tuple[BootSlot, ...]

    def holding(self, uri: str) -> BootSlot | None:
        return next((slot for slot in self.slots if slot.holds(uri)), None)

    def free(self) -> BootSlot:
        """Return a drive without a medium; raise `EdgeError` with the media of all of them."""
        found = next((slot for slot in self.slots if not slot.inserted), None)
        if found is None:
            slots = "; ".join(map(str, self.slots)) or "it has none"
            raise EdgeError(f"the BMC has no free virtual drive for discs: {slots}", remedy="eject what is in it first")
        return found

    def __str__(self) -> str:
        return "virtual media: " + ("; ".join(map(str, self.slots)) or "none")


def read_tray(answers: Answers) -> Tray | ReadRequest:
    """Read virtual media: below the System on newer BMCs, below its manager on others; the System's go first."""
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        serial = serial_of(tree, host)
        found = _found(tree, host)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    return Tray(serial, tuple(map(_slot, found)))


def insert_bodies(uri: str) -> tuple[Mapping[str, Any], ...]:
    """Return the parameters of InsertMedia, the likeliest first: only `Image` is required, and some take nothing else;
    others require the transfer method.
    """
    how = {"TransferProtocolType": uri.partition(":")[0].upper(), "TransferMethod": "Stream"}
    usual = {"Image": uri, "Inserted": True, "WriteProtected": True}
    return ({"Image": uri}, usual, {**usual, **how})


def _found(tree: RedfishTree, host: Resource) -> tuple[Resource, ...]:
    """Return the drives for discs. Where none is known, raise what kept the first from being read: one may exist."""
    troubles: list[ParseError | EdgeError] = []
    found = _discs(tree, host, troubles) or _of_managers(tree, host, troubles)
    if troubles and not found:
        raise troubles[0]
    return found


def _of_managers(tree: RedfishTree, host: Resource, troubles: list[ParseError | EdgeError]) -> tuple[Resource, ...]:
    managers = tree.all(host.links("Links", "ManagedBy")) or tree.members(tree.root, "Managers")
    return tuple(item for manager in managers for item in _discs(tree, manager, troubles))


def _discs(tree: RedfishTree, holder: Resource, troubles: list[ParseError | EdgeError]) -> tuple[Resource, ...]:
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
        troubles.append(
            ParseError("the BMC does not report which media the drive takes", where=item.where("MediaTypes"))
        )
    return bool(_DISCS.intersection(kinds))


def _slot(media: Resource) -> BootSlot:
    image, name = media.text("Image"), media.text("ImageName")
    inserted = media.flag("Inserted")
    return BootSlot(
        media.path,
        media.text("@odata.etag"),
        image,
        name,
        bool(image or name) if inserted is None else inserted,
        _target(media, _INSERT),
        _target(media, _EJECT),
    )


def _target(media: Resource, action: str) -> str:
    target = media.text("Actions", action, "target")
    return normal(target, media.where("Actions", action, "target")) if target else ""
