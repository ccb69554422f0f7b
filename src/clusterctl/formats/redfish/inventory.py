"""From what a BMC answered to an `Inventory`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Inventory
from clusterctl.formats.redfish import (
    fans,
    firmware,
    memory,
    network,
    power_supplies,
    processors,
    rollups,
    stale,
    storage,
    system,
    thermal,
)
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Tree, Wanted

T = TypeVar("T")
_ON = {"On": True, "Off": False}


@dataclass(frozen=True, slots=True)
class Reading:
    """An inventory, and in words why parts of it are None."""

    inventory: Inventory
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    tree: Tree
    problems: list[str] = field(default_factory=list)

    def try_(self, aspect: Callable[[Tree], T]) -> T | None:
        """One aspect; None where its resources are not read yet, could not be read, or were not understood."""
        try:
            return aspect(self.tree)
        except NotYetReadError:
            return None
        except (ParseError, EdgeError) as error:
            self.problems.append(f"{aspect.__name__}: {error.where}: {error.message}")
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
        bios_version=reader.try_(system.bios_version) or "",
        bmc_firmware=reader.try_(system.bmc_firmware) or "",
        cpu_count=reader.try_(processors.cpu_count),
        memory_gib=reader.try_(system.memory_gib),
        gpus=reader.try_(processors.gpus),
        hcas=reader.try_(network.hcas),
        nics=reader.try_(network.nics),
        drives=reader.try_(storage.drives),
        psus=reader.try_(power_supplies.psus),
        temperatures=reader.try_(thermal.temperatures),
        health=reader.try_(system.health) or "",
        cpus=reader.try_(processors.cpus),
        dimms=reader.try_(memory.dimms),
        fans=reader.try_(fans.fans),
        firmware=reader.try_(firmware.firmware),
        stale=reader.try_(stale.stale) or "",
        rollups=reader.try_(rollups.rollups) or (),
        on=_ON.get(host.text("PowerState")),
    )
    problems = tuple(dict.fromkeys((*reader.problems, *tree.notes)))
    return Wanted(tuple(tree.wanted)) if tree.wanted else Reading(inventory, problems)
