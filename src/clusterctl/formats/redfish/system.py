"""The identity of the machine, and what its BMC reports about it as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from clusterctl.fleet.bmc.boot import Post
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Rollup, Serial
from clusterctl.formats.redfish.enclosures import forgive_enclosures
from clusterctl.formats.redfish.tree import (
    ROOT,
    Answers,
    GarbledError,
    NotYetReadError,
    ReadRequest,
    RedfishTree,
    Resource,
)

PLACEHOLDERS = frozenset(
    {
        "0123456789",
        "123456789",
        "1234567890",
        "default",
        "default string",
        "empty",
        "invalid",
        "n/a",
        "na",
        "nil",
        "no dimm",
        "none",
        "not applicable",
        "not available",
        "not specified",
        "null",
        "oem",
        "to be filled by o.e.m.",
        "to be filled by oem",
        "undefined",
        "unknown",
    }
)
"""The values that firmware writes into fields that were never programmed."""


_UNPROGRAMMED = re.compile(
    r"(0x)?[0. -]*|0?(?:123456789)+(?:0123456789)*0?[A-Z]{0,2}|(.)\2{3,}|\$.*|.*(serial ?number|product[_ ]name)\$?",
    re.IGNORECASE | re.DOTALL,
)
"""Zeros, the digits in their order (AMI's `01234567890123456789AB`), one sign again and again, names of fields
that a tool was to fill in (`$CHASSIS_SERIAL_NUMBER`).
"""
_GARBLED = re.compile(r"[\x00-\x1f\x7f-\x9f\ufffd]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}")
"""Bytes that are no text, as they are or as the reader of JSON makes them visible."""
_SERIAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/:-]{0,63}")


def serial_like(text: str) -> bool:
    """Return whether the text can be a machine's serial number."""
    return _SERIAL.fullmatch(text) is not None and programmed(text)


def programmed(text: str) -> bool:
    """Return whether the text is a value, not what firmware writes where the field was never programmed."""
    return text.lower() not in PLACEHOLDERS and not _UNPROGRAMMED.fullmatch(text) and not garbled(text)


def garbled(text: str) -> bool:
    """Return whether bytes of the text are no text: they were lost on the way, or are control characters."""
    return _GARBLED.search(text) is not None


def serial_number(item: Resource) -> Serial | None:
    """Return the serial; None where it is missing or a placeholder."""
    text = item.text("SerialNumber")
    return Serial(text) if programmed(text) else None


def service_label(item: Resource) -> str:
    """Return the label that is printed at the part; empty where the BMC does not know it."""
    return place(item, "PartLocation", "ServiceLabel")


def place(item: Resource, *keys: str) -> str:
    """Return a text of the part's location; empty where it is the list that drives had before Redfish 1.5 (Dell)."""
    return item.text("Location", *keys) if isinstance(item.value("Location"), Mapping) else ""


_NO_HEALTH = frozenset({"", "absent", "n/a", "na", "none", "not available", "null", "undefined", "unknown"})


def well(item: Resource) -> bool | None:
    """Return the part's own health, never its roll-up; None where the BMC does not report it.

    Raises `GarbledError` for an empty text: Redfish has no such health, null stands for none.
    """
    if item.value("Status", "Health") == "" and item.value("Status", "State") == "":
        raise GarbledError("the BMC gives neither state nor health", where=item.where("Status"))
    word = item.text("Status", "Health").lower()
    return None if word in _NO_HEALTH else word == "ok"


_HEALTH = ("OK", "Warning", "Critical")


_BOARD = "HGX"
"""How systems begin that are a board inside the machine and not the host."""
_HOST_LINKS = ("SecureBoot", "Bios", "Storage", "EthernetInterfaces")


def systems(tree: RedfishTree) -> tuple[Resource, ...]:
    """Return every System that can be read, in the BMC's order; an error where none can."""
    if not tree.root.has("Systems"):
        raise ParseError(
            "the BMC serves no system: it is that of an enclosure, a switch or a power shelf",
            where=f"{ROOT} Systems",
            remedy="take it out of the site: a node is one host with a BMC of its own",
        )
    found = tree.members(tree.root, "Systems", whole=False)
    if found:
        return found
    raise _lost_system(tree) or ParseError("the BMC lists no system", where=f"{ROOT}/Systems Members")


def host_system(tree: RedfishTree) -> Resource:
    """Return the System that boots an OS, not a HGX board that lists its GPUs as a System of its own.

    Raise where a System could not be read and the others do not look like a host, and where several are hosts: what is
    read or done would be another machine's.
    """
    found = systems(tree)
    if len(hosts := [one for one in found if _boots(one)]) > 1:
        names = " and ".join(one.id for one in hosts)
        raise ParseError(
            f"the BMC serves several hosts: {names}",
            where=f"{ROOT}/Systems Members",
            remedy="take it out of the site: a node is one host with a BMC of its own",
        )
    best = max(found, key=_host_likeness)
    lost = _lost_system(tree)
    if lost is not None and not any(best.has(name) for name in _HOST_LINKS):
        raise lost
    return best


def _boots(system: Resource) -> bool:
    """Return whether the System is certainly a host: it has a BIOS and a boot order."""
    return not system.id.startswith(_BOARD) and bool(system.text("BiosVersion")) and system.has("Boot")


def _lost_system(tree: RedfishTree) -> EdgeError | None:
    where = f"{ROOT}/Systems"
    lost = (one for one in tree.unread.values() if one.where.rsplit("/", 1)[0] == where or one.where == where)
    return next((EdgeError(one.reason, where=one.where) for one in lost), None)


def _host_likeness(system: Resource) -> tuple[bool, bool, int, bool]:
    links = sum(system.has(name) for name in _HOST_LINKS)
    return not system.id.startswith(_BOARD), bool(system.text("BiosVersion")), links, system.has("Boot")


def host_first(tree: RedfishTree) -> tuple[Resource, ...]:
    """Return every System, the host's first."""
    host = host_system(tree)
    return (host, *(one for one in systems(tree) if one.path != host.path))


def chassis(tree: RedfishTree) -> tuple[Resource, ...]:
    """Return every chassis that can be read, in the BMC's order.

    One that is lost may have any part in it, but for the enclosure of a part that was read.
    """
    found = tree.kept(tree.members(tree.root, "Chassis", whole=False), _legible_chassis)
    forgive_enclosures(tree)
    return found


_CHASSIS_LINKS = (
    *("NetworkAdapters", "Drives", "Links", "Thermal", "ThermalSubsystem", "Power", "PowerSubsystem", "Sensors"),
    *("PCIeDevices", "Assembly", "EnvironmentMetrics", "Memory", "Status"),
)


def _legible_chassis(unit: Resource) -> Resource:
    """Return the chassis; `GarbledError` where its type or state is no text, or where it has neither type nor links."""
    unit.value("Status", "State")
    if not chassis_type(unit) and not any(unit.has(name) for name in _CHASSIS_LINKS):
        raise GarbledError("the chassis has neither a type nor links", where=unit.where("ChassisType"))
    return unit


def chassis_type(unit: Resource) -> str:
    """Return the type, empty where the BMC leaves it out; `GarbledError` for null and an empty text, which are none."""
    if unit.body.get("ChassisType", "left out") in (None, ""):
        raise GarbledError("the type of the chassis is empty", where=unit.where("ChassisType"))
    return unit.term("ChassisType")


def required(resource: Resource, name: str, valid: Callable[[str], bool] = programmed) -> str:
    """Return the text; `ParseError` where it is missing, or a placeholder of the firmware."""
    found = resource.text(name)
    if not valid(found):
        raise ParseError(
            f"the BMC does not report it (found {found!r})",
            where=resource.where(name),
            remedy="power the machine on once so that the BMC takes inventory, or have the vendor program the field",
        )
    return found


def health(tree: RedfishTree) -> str:
    """Return the worse of the system's own health and its roll-up: OK, Warning, Critical."""
    system = host_system(tree)
    words = [system.term("Status", name) for name in ("Health", "HealthRollup")]
    known = [_HEALTH.index(word) for word in words if word in _HEALTH]
    if not known:
        raise ParseError("the BMC does not report it", where=system.where("Status", "Health"))
    return _HEALTH[max(known)]


def bios_version(tree: RedfishTree) -> str:
    return host_system(tree).text("BiosVersion") or _firmware(tree, "BIOS")


def bmc_firmware(tree: RedfishTree) -> str:
    system = host_system(tree)
    paths = system.links("Links", "ManagedBy")
    managers = tree.readable(paths) if paths else tree.members(tree.root, "Managers", whole=False)
    versions = [manager.text("FirmwareVersion") for manager in managers]
    return next((version for version in versions if version), "") or _firmware(tree, "BMC")


def _firmware(tree: RedfishTree, name: str) -> str:
    """Return the version of the firmware inventory under this name, where the resource itself reports none."""
    service = tree.follow(tree.root, "UpdateService")
    for item in tree.members(service, "FirmwareInventory", whole=False):
        if name in (item.id.upper(), item.text("Name").upper()) and item.text("Version"):
            return item.text("Version")
    raise ParseError(f"the BMC reports no {name} version", where=service.where("FirmwareInventory"))


_HPE = ("Oem", "Hpe", "AggregateHealthStatus")
_SUFFIX = "RollupStatus"
_OF_NO_PART = frozenset({"CurrentRollupStatus", "SystemHealthRollupStatus"})
"""The electric current, and, since iDRAC10, the whole machine."""
_WORDS = {"Degraded": "Warning", "Error": "Critical", "Warning": "Warning", "Critical": "Critical"}
"""The DMTF's words for a bad health; all others (OK, Unknown, null) are not bad."""


def rollups(tree: RedfishTree) -> tuple[Rollup, ...]:
    """Return the kinds of unhealthy parts, each once, by name."""
    host = host_system(tree)
    bad = {name: _WORDS[word] for name, word in _rollups(host) if isinstance(word, str) and word in _WORDS}
    return tuple(Rollup(name, bad[name]) for name in sorted(bad))


def _rollups(host: Resource) -> Iterator[tuple[str, Any]]:
    for name in ("Memory", "Processor"):
        keys = (f"{name}Summary", "Status")
        yield name, host.text(*keys, "HealthRollup") or host.text(*keys, "Health")
    for key, value in _object(host, _DELL_SYSTEM).items():
        if key.endswith(_SUFFIX) and key not in _OF_NO_PART:
            yield key.removesuffix(_SUFFIX), value
    for key in _object(host, _HPE):
        if isinstance(host.value(*_HPE, key), Mapping):
            yield key, host.text(*_HPE, key, "Status", "Health")


def _object(host: Resource, keys: tuple[str, ...]) -> Mapping[str, Any]:
    found = host.value(*keys)
    return found if isinstance(found, Mapping) else {}


_HPE_COMPLETE = "vmaindevicediscoverycomplete"
_DELL_SYSTEM = ("Oem", "Dell", "DellSystem")
_BOOTED = frozenset({"SystemHardwareInitializationComplete", "SetupEntered", "OSBootStarted", "OSRunning"})
_SUMMARIES = {"memory": ("MemorySummary", "TotalSystemMemoryGiB"), "processors": ("ProcessorSummary", "Count")}
_HPE_POSTED = frozenset({"FinishedPost", "InPostDiscoveryComplete"})


def stale(tree: RedfishTree) -> str:
    """Return why the BMC's inventory is not that of the machine now; empty where no sign of it is seen."""
    host = host_system(tree)
    discovery = host.text("Oem", "Hpe", "DeviceDiscoveryComplete", "DeviceDiscovery")
    if discovery and discovery.lower() != _HPE_COMPLETE:
        return f"the BMC has not finished to discover the machine's devices ({discovery})"
    if "LastSystemInventoryTime" in _object(host, _DELL_SYSTEM) and not host.text(
        *_DELL_SYSTEM, "LastSystemInventoryTime"
    ):
        return "the Lifecycle Controller has never collected this machine's inventory"
    if host.term("PowerState") != "Off":
        return ""
    unknown = [name for name, keys in _SUMMARIES.items() if host.has(keys[0]) and not host.number(*keys)]
    return f"the machine is off, and its BMC does not know its {' and '.join(unknown)} yet" if unknown else ""


def read_post(answers: Answers) -> Post | ReadRequest:
    """Return the state of the self-test: HPE's PostState, else BootProgress; a machine that is off has not booted."""
    tree = RedfishTree(answers)
    try:
        host = host_system(tree)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    return post(host)


def posted(tree: RedfishTree) -> str | None:
    """Return when the self-test of the running machine ended, empty where that has no time; None where it did not."""
    host = host_system(tree)
    return host.text("BootProgress", "LastStateTime") if post(host) is Post.DONE else None


def post(host: Resource) -> Post:
    state = host.text("Oem", "Hpe", "PostState")
    progress = host.text("BootProgress", "LastState")
    if not (state or progress):
        return Post.UNKNOWN
    done = host.term("PowerState") == "On" and (state in _HPE_POSTED if state else progress in _BOOTED)
    return Post.DONE if done else Post.RUNNING
