"""From what a BMC answered to an `Inventory`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Inventory, Unread
from clusterctl.formats.redfish import cooling_power, network, processors, storage, system, updates
from clusterctl.formats.redfish.machine import read_machine
from clusterctl.formats.redfish.tree import Answers, GarbledError, NotYetReadError, ReadRequest, RedfishTree

T = TypeVar("T")
MAX_UNREAD = 40
"""So many unreadable resources of each kind are named."""
_ON = {"On": True, "Off": False}


@dataclass(frozen=True, slots=True)
class InventoryReading:
    """An inventory, and for each part that is None the reason."""

    inventory: Inventory
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    tree: RedfishTree
    problems: list[str] = field(default_factory=list)

    def read(self, name: str, read: Callable[[RedfishTree], T]) -> T | None:
        """Return one field; None where its resources are not read yet, cannot be read, or are not understood."""
        self.tree.kind = name
        try:
            return read(self.tree)
        except NotYetReadError:
            return None
        except (ParseError, EdgeError) as error:
            if not isinstance(error, ParseError) or isinstance(error, GarbledError):
                self.tree.leave_out(error)
            self.problems.append(f"{name}: {error.where}: {error.message}")
            return None


def read_inventory(answers: Answers) -> InventoryReading | ReadRequest:
    """Return the inventory, or what must be read first.

    Raises `ParseError` or `EdgeError` where the BMC does not report which machine this is: without manufacturer, model
    and serial nothing else is of use. Everything else is None (or empty, for versions and health) when unmeasured; a
    kind of parts of which some could be read has those, and the others stand in `unread`.
    """
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        machine = read_machine(tree)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    reader = _Reader(tree)
    inventory = Inventory(
        manufacturer=machine.manufacturer,
        model=machine.model,
        serial=machine.serial,
        aliases=machine.aliases,
        bios_version=reader.read("bios_version", system.bios_version) or "",
        bmc_firmware=reader.read("bmc_firmware", system.bmc_firmware) or "",
        cpu_count=reader.read("cpu_count", processors.cpu_count),
        memory_gib=reader.read("memory_gib", processors.memory_gib),
        gpus=reader.read("gpus", processors.gpus),
        hcas=reader.read("hcas", network.hcas),
        ethernet_adapters=reader.read("ethernet_adapters", network.ethernet_adapters),
        nics=reader.read("nics", network.nics),
        drives=reader.read("drives", storage.drives),
        psus=reader.read("psus", cooling_power.psus),
        temperatures=reader.read("temperatures", cooling_power.temperatures),
        health=reader.read("health", system.health) or "",
        cpus=reader.read("cpus", processors.cpus),
        dimms=reader.read("dimms", processors.dimms),
        fans=reader.read("fans", cooling_power.fans),
        firmware=reader.read("firmware", updates.running_firmware),
        stale=reader.read("stale", system.stale) or "",
        rollups=reader.read("rollups", system.rollups) or (),
        on=_ON.get(host.term("PowerState")),
        posted=reader.read("posted", system.posted),
    )
    if tree.wanted:
        return ReadRequest(tuple(tree.wanted))
    unread = _bounded(tree)
    problems = (*reader.problems, *(f"{one.kind}: {one}" for one in unread), *tree.notes)
    return InventoryReading(replace(inventory, unread=unread), tuple(dict.fromkeys(problems)))


def _bounded(tree: RedfishTree) -> tuple[Unread, ...]:
    count = Counter[str]()
    kept = []
    for one in tree.unread.values():
        count[one.kind] += 1
        if count[one.kind] <= MAX_UNREAD:
            kept.append(one)
    return tuple(kept)
