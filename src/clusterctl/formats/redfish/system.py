"""Who the machine is, and what its BMC says of it as a whole."""

from __future__ import annotations

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.parts import programmed
from clusterctl.formats.redfish.tree import Resource, Tree

_HEALTH = ("OK", "Warning", "Critical")


def systems(tree: Tree) -> tuple[Resource, ...]:
    found = tree.members(tree.root, "Systems")
    if not found:
        raise ParseError("the BMC lists no system", where="/redfish/v1/Systems Members")
    return found


def host_system(tree: Tree) -> Resource:
    """The system that boots an OS; beside it an HGX board lists its GPUs as a system without BIOS and boot order."""
    return max(systems(tree), key=lambda s: (bool(s.text("BiosVersion")), s.has("Boot"), s.has("PowerState")))


def chassis(tree: Tree) -> tuple[Resource, ...]:
    return tree.members(tree.root, "Chassis")


def _serial(system: Resource) -> Serial:
    """What is printed on the machine: Dell writes it (the service tag) into SKU, `SerialNumber` is the board's."""
    name = "SKU" if system.text("Manufacturer").lower().startswith("dell") else "SerialNumber"
    return Serial(required(system, name))


def serial_of(tree: Tree, system: Resource) -> Serial:
    """Which machine it is, for all that read or change it: by the system; where that keeps silent (GB200), from the
    assembly in its chassis that is of its model.
    """
    try:
        return _serial(system)
    except ParseError:
        found = set() if system.text("SerialNumber") else _assembled(tree, system)
        if len(found) != 1:
            raise
        return Serial(found.pop())


def _assembled(tree: Tree, system: Resource) -> set[str]:
    """Serials of the assemblies of the system's model; what cannot be read tells none."""
    model = system.text("Model").casefold()
    try:
        linked = system.links("Links", "Chassis")
        units = tree.all(linked) if linked else chassis(tree)
        assemblies = tree.all(path for one in units if (path := one.link("Assembly")))
        items = [item for one in assemblies for item in one.each("Assemblies")]
        same = [item for item in items if model and item.text("Model").casefold() == model]
        return {number for item in same if programmed(number := item.text("SerialNumber"))}
    except (ParseError, EdgeError):
        return set()


def required(resource: Resource, name: str) -> str:
    found = resource.text(name)
    if not programmed(found):
        raise ParseError(
            f"the BMC does not tell it (found {found!r})",
            where=resource.where(name),
            remedy="power the machine on once so that the BMC takes inventory, or have the vendor program the field",
        )
    return found


def memory_gib(tree: Tree) -> float:
    system = host_system(tree)
    found = system.number("MemorySummary", "TotalSystemMemoryGiB")
    if not found:
        raise ParseError("not told", where=system.where("MemorySummary", "TotalSystemMemoryGiB"))
    return float(found)


def health(tree: Tree) -> str:
    """The worse of the system's own health and its roll-up: OK, Warning, Critical."""
    system = host_system(tree)
    told = [system.text("Status", name) for name in ("Health", "HealthRollup")]
    known = [_HEALTH.index(word) for word in told if word in _HEALTH]
    if not known:
        raise ParseError("not told", where=system.where("Status", "Health"))
    return _HEALTH[max(known)]


def bios_version(tree: Tree) -> str:
    return host_system(tree).text("BiosVersion") or _firmware(tree, "BIOS")


def bmc_firmware(tree: Tree) -> str:
    system = host_system(tree)
    paths = system.links("Links", "ManagedBy")
    managers = tree.all(paths) if paths else tree.members(tree.root, "Managers")
    told = [manager.text("FirmwareVersion") for manager in managers]
    return next((version for version in told if version), "") or _firmware(tree, "BMC")


def _firmware(tree: Tree, name: str) -> str:
    """The version that the firmware inventory has under this name, where the resource itself keeps silent."""
    service = tree.follow(tree.root, "UpdateService")
    for item in tree.members(service, "FirmwareInventory"):
        if name in (item.id.upper(), item.text("Name").upper()) and item.text("Version"):
            return item.text("Version")
    raise ParseError(f"no {name} version is told", where=service.where("FirmwareInventory"))
