"""Where a recorded service keeps what the emulator has to answer by itself: sessions, power, boot, the event log.

Found by following links from the service root, as DSP0266 wants it; what a recording lacks is reported, and placed
where most services have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl_lab.emulators.redfish.replay.recording import ROOT
from clusterctl_lab.emulators.redfish.resource import Resource
from clusterctl_lab.emulators.redfish.traits import Etag

Resources = Mapping[str, Resource]
_RESET, _CLEAR = "#ComputerSystem.Reset", "#LogService.ClearLog"
_RESET_TYPES = ("On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown")
_BOOT_TARGETS = ("None", "Pxe", "Hdd", "Cd", "UefiHttp")
_BOOT_MODES = ("UEFI", "Legacy")
_ALLOWED = "@Redfish.AllowableValues"


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Paths without trailing slash; `settings` is empty where the system itself takes a boot override, `log` where no
    log can be cleared. `maker` is how the service names its vendor, in lower case; `gaps` is what is lacking, in words.
    """

    maker: str
    sessions: str
    system: str
    settings: str
    chassis: tuple[str, ...]
    reset: str
    reset_types: tuple[str, ...]
    boot_targets: tuple[str, ...]
    boot_modes: tuple[str, ...]
    etag: Etag
    log: str
    clear_log: str
    gaps: tuple[str, ...]


def find_landmarks(resources: Resources) -> Landmarks:
    """Reads about a dozen resources."""
    root = resources[ROOT]
    service, system = _at(resources, _link(root, "SessionService")), _host(resources, root)
    action, boot = _inside(system, "Actions", _RESET), _inside(system, "Boot")
    log, clear = _log(resources, system)
    path = _path(system) or f"{ROOT}/Systems/1"
    settings = _link(system, "@Redfish.Settings", "SettingsObject")
    return Landmarks(
        maker=_maker(root, system),
        sessions=_link(root, "Links", "Sessions") or _link(service, "Sessions") or f"{ROOT}/SessionService/Sessions",
        system=path,
        settings=settings if settings in resources else "",
        chassis=tuple(_links(system, "Links", "Chassis")),
        reset=_bare(action.get("target")) or f"{path}/Actions/ComputerSystem.Reset",
        reset_types=_reset_types(resources, action) or _RESET_TYPES,
        boot_targets=_strings(boot.get(f"BootSourceOverrideTarget{_ALLOWED}")) or _BOOT_TARGETS,
        boot_modes=_strings(boot.get(f"BootSourceOverrideMode{_ALLOWED}")) or _BOOT_MODES,
        etag=_etag(system),
        log=log,
        clear_log=clear,
        gaps=tuple(_gaps(service, system, action, clear)),
    )


def _etag(system: Resource) -> Etag:
    recorded = system.get("@odata.etag")
    if not isinstance(recorded, str):
        return Etag.NONE
    return Etag.WEAK if recorded.startswith("W/") else Etag.STRONG


def _gaps(service: Resource, system: Resource, reset: Resource, clear_log: str) -> Iterator[str]:
    if not service:
        yield f"no session service is recorded: logins work at {ROOT}/SessionService/Sessions"
    if not system:
        yield "no system is recorded: power and boot cannot be seen"
    elif not reset:
        yield f"no action {_RESET} is recorded: it works at the usual place"
    if not clear_log:
        yield "no event log is recorded that can be cleared: none is kept"


def _maker(root: Resource, system: Resource) -> str:
    """Return the vendor that the service root, its OEM part or the system names."""
    named = [root.get("Vendor"), *_inside(root, "Oem"), root.get("Product"), system.get("Manufacturer")]
    return " ".join(name for name in named if isinstance(name, str)).lower()


def dangling(resources: Resources) -> int:
    """How many links lead to resources that were not recorded."""
    targets = {_bare(link) for path in resources for link in _all_links(resources[path])}
    return sum(1 for target in targets if target.startswith(ROOT) and target not in resources)


def _host(resources: Resources, root: Resource) -> Resource:
    """Return the system that boots an OS; the HGX board is another system, without boot order and BIOS."""
    collection = _at(resources, _link(root, "Systems"))
    systems = [found for path in _links(collection, "Members") if (found := _at(resources, path))]
    return max(systems, key=lambda one: sum(key in one for key in ("BiosVersion", "Boot", "PowerState")), default={})


def _log(resources: Resources, system: Resource) -> tuple[str, str]:
    """The entries of the first log that can be cleared, the system's before its manager's; and where it is cleared."""
    owners = [system, *(_at(resources, path) for path in _links(system, "Links", "ManagedBy"))]
    for owner in owners:
        for path in _links(_at(resources, _link(owner, "LogServices")), "Members"):
            service = _at(resources, path)
            clear = _bare(_inside(service, "Actions", _CLEAR).get("target"))
            entries = _link(service, "Entries")
            if clear and entries in resources:
                return entries, clear
    return "", ""


def _reset_types(resources: Resources, action: Resource) -> tuple[str, ...]:
    listed = _strings(action.get(f"ResetType{_ALLOWED}"))
    parameters = _at(resources, _bare(action.get("@Redfish.ActionInfo"))).get("Parameters")
    for parameter in parameters if isinstance(parameters, list) else ():
        if isinstance(parameter, Mapping) and parameter.get("Name") == "ResetType":
            listed = listed or _strings(parameter.get("AllowableValues"))
    return listed


def _at(resources: Resources, path: str) -> Resource:
    return resources.get(path, {})


def _inside(value: Any, *keys: str) -> Resource:
    """The object below these keys; an empty one where it is not."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _link(resource: Resource, *keys: str) -> str:
    return _path(_inside(resource, *keys))


def _links(resource: Resource, *keys: str) -> list[str]:
    listed = _inside(resource, *keys[:-1]).get(keys[-1])
    return [_path(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _path(resource: Resource) -> str:
    return _bare(resource.get("@odata.id"))


def _bare(link: object) -> str:
    return link.split("#", 1)[0].rstrip("/") if isinstance(link, str) else ""


def _strings(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _all_links(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "@odata.id" and isinstance(inner, str):
                yield inner
            else:
                yield from _all_links(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _all_links(inner)
