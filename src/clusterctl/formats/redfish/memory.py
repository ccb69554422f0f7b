"""Memory modules of the host. An HGX board lists its GPUs' memory as modules of a system of its own: not these."""

from __future__ import annotations

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.natural import natural
from clusterctl.fleet.node import Dimm
from clusterctl.formats.redfish.parts import serial_number, service_label, well
from clusterctl.formats.redfish.resource import Resource
from clusterctl.formats.redfish.system import host_system
from clusterctl.formats.redfish.tree import Tree


def dimms(tree: Tree) -> tuple[Dimm, ...]:
    """All that are plugged in, by slot; empty sockets are listed as absent, or without capacity."""
    found = [_dimm(item) for item in tree.members(host_system(tree), "Memory") if not item.absent]
    there = [dimm for dimm in found if dimm.size_mib or dimm.healthy is False]
    return tuple(sorted(there, key=lambda dimm: natural(dimm.slot)))


def _dimm(item: Resource) -> Dimm:
    size, healthy = item.whole("CapacityMiB"), well(item)
    if size is None and healthy is not False and item.text("Status", "State") in ("", "Enabled"):
        raise ParseError("the module does not tell its size", where=item.where("CapacityMiB"))
    return Dimm(
        slot=service_label(item) or item.text("DeviceLocator") or item.id,
        size_mib=size or 0,
        model=item.text("PartNumber"),
        serial=serial_number(item),
        healthy=healthy,
    )
