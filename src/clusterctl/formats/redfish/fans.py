"""Fans: those of each chassis' ThermalSubsystem; of the older Thermal resource where there is none."""

from __future__ import annotations

from itertools import chain

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Fan
from clusterctl.formats.redfish.parts import service_label, well
from clusterctl.formats.redfish.resource import Resource
from clusterctl.formats.redfish.system import chassis
from clusterctl.formats.redfish.tree import Tree


def fans(tree: Tree) -> tuple[Fan, ...]:
    """All that are there, in the BMC's order. The older resource first: it is read for its temperatures anyway."""
    units = chassis(tree)
    older = tree.all(path for one in units if (path := one.link("Thermal")))
    listed = [item for one in older for item in one.each("Fans")]
    if not listed:
        newer = tree.all(path for one in units if (path := one.link("ThermalSubsystem")))
        listed = list(chain.from_iterable(tree.gather((one for one in newer if one.has("Fans")), "Fans")))
    there = [item for item in listed if not item.absent]
    if not there:
        raise ParseError("no fan is listed", where="/redfish/v1/Chassis Fans")
    return tuple(Fan(_slot(item), well(item)) for item in there)


def _slot(item: Resource) -> str:
    return service_label(item) or item.text("Name") or item.text("FanName") or item.id
