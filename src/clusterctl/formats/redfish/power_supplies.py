"""Power supplies: which are plugged in, and how well each of them is.

Every vendor names them differently: Dell `PS1 Status`, Supermicro `Power Supply Bay 1`, HPE all alike but for a bay
number of its own. Empty bays are not listed: no SKU needs them all.
"""

from __future__ import annotations

from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Psu
from clusterctl.formats.redfish.parts import serial_number, service_label, well
from clusterctl.formats.redfish.system import chassis
from clusterctl.formats.redfish.tree import Resource, Tree


def psus(tree: Tree) -> tuple[Psu, ...]:
    """All that are plugged in, in the BMC's order; `ParseError` where it lists none."""
    present = [item for item in _supplies(tree) if not item.absent]
    if not present:
        raise ParseError("no power supply is listed", where="/redfish/v1/Chassis PowerSupplies")
    return tuple(_psu(item) for item in present)


def _psu(item: Resource) -> Psu:
    return Psu(_slot(item), serial_number(item), well(item))


def _slot(item: Resource) -> str:
    """What is printed beside it, as far as the BMC knows."""
    bay = item.whole("Oem", "Hpe", "BayNumber")
    if bay is not None:
        return f"bay {bay}"
    label = service_label(item) or item.text("Name").removesuffix(" Status")
    return label or item.id


def _supplies(tree: Tree) -> list[Resource]:
    """From each chassis' PowerSubsystem; from the older Power resource where there is none."""
    units = chassis(tree)
    newer = tree.all(path for one in units if (path := one.link("PowerSubsystem")))
    older = tree.all(path for one in units if not one.has("PowerSubsystem") and (path := one.link("Power")))
    listed = tree.gather((one for one in newer if one.has("PowerSupplies")), "PowerSupplies")
    return [*chain.from_iterable(listed), *(item for one in older for item in one.each("PowerSupplies"))]
