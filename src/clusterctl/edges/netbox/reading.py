"""One reading of a NetBox site: its devices, the nodes' ports and addresses, and its cables.

What NetBox computes slowly (the far ends of paths, the interfaces of every device) is asked for only where needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from clusterctl.edges.netbox.api import NetboxApi, NetboxListing
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.netbox.nodes import NodeChoice, Ports, chosen
from clusterctl.formats.netbox.records import (
    ADDRESS_FIELDS,
    CABLE_FIELDS,
    DEVICE_FIELDS,
    ENDPOINT_FIELDS,
    INTERFACE_FIELDS,
    FarEnd,
    NetboxCable,
    NetboxConflict,
    NetboxDevice,
    NetboxInterface,
    read_address,
    read_cable,
    read_device,
    read_far_end,
    read_interface,
    read_list,
)
from clusterctl.formats.netbox.values import text, whole
from clusterctl.formats.netbox.wiring import panel_interfaces

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReading:
    """What NetBox has of one site. `nodes` are those of `devices` that are nodes; `version` is NetBox's."""

    version: str
    devices: Sequence[NetboxDevice]
    nodes: Sequence[NetboxDevice]
    ports: Ports
    cables: Sequence[NetboxCable]
    far_ends: Mapping[int, FarEnd]
    conflicts: Sequence[NetboxConflict]


class _Reader:
    """Reads lists and gathers the conflicts among their objects."""

    def __init__(self, api: NetboxApi) -> None:
        self._api = api
        self.conflicts: list[NetboxConflict] = []

    def all(self, listing: NetboxListing, reader: Callable[[Mapping[str, Any]], T], what: str) -> list[T]:
        return self._taken(self._api.read_all(listing), reader, what, listing.page)

    def by(
        self,
        listing: NetboxListing,
        ids: Mapping[str, Sequence[int]],
        reader: Callable[[Mapping[str, Any]], T],
        what: str,
    ) -> list[T]:
        found: list[T] = []
        for name, values in ids.items():
            found += self._taken(self._api.read_by(listing, name, values), reader, what, listing.page)
        return found

    def _taken(self, items: list[Any], reader: Callable[[Mapping[str, Any]], T], what: str, page: str) -> list[T]:
        records, conflicts = read_list(items, reader, what, page)
        self.conflicts += conflicts
        return records


def site_id(api: NetboxApi, slug: str, where: str) -> int:
    """Return the id of a site by its slug. Raise `UsageError` where NetBox has none; `where` names the setting."""
    found = api.read_all(NetboxListing(page="dcim/sites", filters={"slug": slug}, fields="id,slug"))
    for item in found:
        if isinstance(item, dict) and text(item, "slug") == slug:
            return whole(item)
    known = api.read_all(NetboxListing(page="dcim/sites", filters={}, fields="id,slug"))
    slugs = ", ".join(sorted(text(item, "slug") for item in known if isinstance(item, dict))[:10]) or "none"
    raise UsageError(f"NetBox has no site {slug!r}", where=where, remedy=f"write one of its slugs: {slugs}")


def read_site(api: NetboxApi, site: int, choice: NodeChoice) -> SiteReading:
    """Return the site. An object that is not understood is a conflict, and stops no other."""
    version = api.version()
    reader = _Reader(api)
    in_site = {"site_id": [site]}
    devices = reader.all(
        NetboxListing(page="dcim/devices", filters=in_site, fields=DEVICE_FIELDS), read_device, "device"
    )
    nodes, refused = chosen(devices, choice)
    ports = _ports(reader, {device.id for device in devices}, [device.id for device in nodes], in_site)
    cables = reader.all(NetboxListing(page="dcim/cables", filters=in_site, fields=CABLE_FIELDS), read_cable, "cable")
    far = reader.by(
        NetboxListing(page="dcim/interfaces", filters={}, fields=ENDPOINT_FIELDS),
        {"id": panel_interfaces(cables)},
        read_far_end,
        "interface",
    )
    return SiteReading(
        version=version,
        devices=devices,
        nodes=nodes,
        ports=ports,
        cables=cables,
        far_ends={one.id: one for one in far},
        conflicts=(*reader.conflicts, *refused),
    )


def _ports(reader: _Reader, devices: set[int], nodes: Sequence[int], in_site: Mapping[str, Sequence[int]]) -> Ports:
    """Return all management interfaces, the nodes' addresses, and the other interfaces that have one."""
    managed = NetboxListing(page="dcim/interfaces", filters={**in_site, "mgmt_only": "true"}, fields=INTERFACE_FIELDS)
    management = [one for one in reader.all(managed, read_interface, "interface") if one.mgmt_only]
    listed = NetboxListing(page="ipam/ip-addresses", filters={}, fields=ADDRESS_FIELDS)
    addresses = reader.by(listed, {"device_id": nodes}, read_address, "IP address")
    known = {one.id for one in management}
    others = sorted({one.interface for one in addresses} - known - {0})
    hosts = reader.by(
        NetboxListing(page="dcim/interfaces", filters={}, fields=INTERFACE_FIELDS),
        {"id": others},
        read_interface,
        "interface",
    )
    found: list[NetboxInterface] = [one for one in (*management, *hosts) if one.device in devices]
    return Ports.of(found, addresses)
