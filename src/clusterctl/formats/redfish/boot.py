"""From where a machine boots: what its BMC shows, and what to ask it for (DMTF ComputerSystem, object `Boot`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Resource, Tree, Wanted

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
    """What stands in `Boot` about the next boot; empty where it is not told."""

    target: str
    enabled: str
    mode: str
    uri: str

    def __str__(self) -> str:
        told = {"target": self.target, "enabled": self.enabled, "mode": self.mode, "URI": self.uri}
        return "boot override " + (", ".join(f"{name} {value}" for name, value in told.items() if value) or "not told")

    def gives(self, wish: BootOnce) -> bool:
        """Whether the next boot will be the wished one. A mode that is not told is not wrong."""
        right = self.target in TARGETS[wish.source] and self.enabled == ONCE and self.mode in (UEFI, "")
        return right and (not wish.uri or self.uri == wish.uri)


@dataclass(frozen=True, slots=True)
class BootControl:
    """`etags` has, by path, what takes changes: the settings object of the System first where it has one with a `Boot`
    in it, then the System. `shown` are the overrides that they tell; `boot` is the object of the first.
    """

    serial: Serial
    etags: Mapping[str, str]
    boot: Mapping[str, Any]
    shown: tuple[Override, ...]
    allowed: frozenset[str]
    manager: str | None

    def gives(self, wish: BootOnce) -> bool:
        """Whether the machine, or what it will take over at its next boot, shows what was wished."""
        return any(override.gives(wish) for override in self.shown)

    def target(self, source: BootSource) -> str:
        """How this BMC calls the source; `EdgeError` where it has none."""
        found = next((name for name in TARGETS[source] if not self.allowed or name in self.allowed), None)
        if found is None:
            raise EdgeError(
                f"the BMC boots from {', '.join(sorted(self.allowed))}, not from {source.value}",
                where=next(iter(self.etags)),
                remedy="choose another way to boot, or switch it on in the BIOS",
            )
        return found


def read_boot(answers: Answers) -> BootControl | Wanted:
    """Raises `ParseError` or `EdgeError` where it is not told which machine this is, or how it boots."""
    tree = Tree(answers)
    try:
        host = system.host_system(tree)
        serial = system.serial_of(tree, host)
        settings = settings_of(tree, host)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
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
    """What to PATCH, the likeliest first: with its mode, for without it some fall back to Legacy; without, where the
    mode cannot be written; and with all that `Boot` holds, first where `whole`.
    """
    usual = {TARGET: control.target(wish.source), ENABLED: ONCE, MODE: UEFI}
    if wish.uri:
        usual[URI] = wish.uri
    without_mode = {key: value for key, value in usual.items() if key != MODE}
    full = {**_writable(control.boot), **usual}
    order = (full, usual, without_mode) if whole else (usual, without_mode, full)
    return tuple({"Boot": body} for body in order)


def settings_of(tree: Tree, host: Resource) -> Resource | None:
    """The settings object of the System (`@Redfish.Settings`), where it is there and takes a `Boot`."""
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
        raise ParseError("the BMC does not tell how the machine boots", where=place.where("Boot"))
    return found


def _override(shown: Resource) -> Override:
    return Override(*(shown.text("Boot", key) for key in (TARGET, ENABLED, MODE, URI)))


def _writable(boot: Mapping[str, Any]) -> dict[str, Any]:
    """What is no annotation, no link and not null."""
    return {
        key: value
        for key, value in boot.items()
        if "@" not in key and value is not None and not isinstance(value, Mapping)
    }
