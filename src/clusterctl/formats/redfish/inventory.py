"""From what a BMC answered to an `Inventory`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Inventory
from clusterctl.formats.redfish import cooling_power, network, processors, storage, system, updates
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Tree, Wanted

T = TypeVar("T")
_ON = {"On": True, "Off": False}


@dataclass(frozen=True, slots=True)
class Reading:
    """An inventory, and for each part that is None the reason."""

    inventory: Inventory
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    tree: Tree
    problems: list[str] = field(default_factory=list)

    def read(self, name: str, read: Callable[[Tree], T]) -> T | None:
        """Return one field; None where its resources are not read yet, cannot be read, or are not understood."""
        try:
            return read(self.tree)
        except NotYetReadError:
            return None
        except (ParseError, EdgeError) as error:
            self.problems.append(f"{name}: {error.where}: {error.message}")
            return None


def read_inventory(answers: Answers) -> Reading | Wanted:
    """The inventory, or what must be read first.

    Raises `ParseError` or `EdgeError` where the BMC does not tell which machine this is: without manufacturer, model
    and serial nothing else is of use. Everything else is None (or empty, for versions and health) when unmeasured.
    """
    tree = Tree(answers)
    try:
        host = system.host_system(tree)
        serial = system.serial_of(tree, host)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    reader = _Reader(tree)
    inventory = Inventory(
        manufacturer=system.required(host, "Manufacturer"),
        model=system.required(host, "Model"),
        serial=serial,
        bios_version=reader.read("bios_version", system.bios_version) or "",
        bmc_firmware=reader.read("bmc_firmware", system.bmc_firmware) or "",
        cpu_count=reader.read("cpu_count", processors.cpu_count),
        memory_gib=reader.read("memory_gib", system.memory_gib),
        gpus=reader.read("gpus", processors.gpus),
        hcas=reader.read("hcas", network.hcas),
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
        on=_ON.get(host.text("PowerState")),
        posted=reader.read("posted", system.posted),
    )
    problems = tuple(dict.fromkeys((*reader.problems, *tree.notes)))
    return Wanted(tuple(tree.wanted)) if tree.wanted else Reading(inventory, problems)
