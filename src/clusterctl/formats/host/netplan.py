"""A host's network as a netplan document, version 2 (netplan.readthedocs.io), for networkd.

Ports are matched by their permanent MAC, so that order and slot names do not matter. A boot waits for the uplink only;
unnamed ports stay unconfigured. The DHCP client identifier is the MAC, as with the firmware, so the lease continues.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import yaml

from clusterctl.fleet.network.host_network import Addressing, HostBond, HostNetwork, HostPort, HostVlan, Link

FILE = "/etc/netplan/90-clusterctl.yaml"
HEADER = "# Written by clusterctl from the site file: changes here do not last.\n"
MII_MONITOR_MS = 100


def netplan(network: HostNetwork) -> dict[str, Any]:
    """Return the whole document, `{"network": …}`.

    IPoIB interfaces also need `networkd.udev_rules` if they are named by GUID, which netplan does not support, or use
    connected mode: systemd 252 ignores the mode that netplan writes.
    """
    sections: dict[str, dict[str, Any]] = {}
    for link in network.links:
        sections.setdefault(_section(link), {})[link.label] = _link(link, network)
    return {"network": {"version": 2, "renderer": "networkd", **sections}}


def netplan_file(network: HostNetwork) -> str:
    """Return the document as the text of `FILE`, which only root may read (netplan warns otherwise)."""
    return HEADER + yaml.safe_dump(netplan(network), sort_keys=False, width=120)


def _section(link: Link) -> str:
    match link:
        case HostBond():
            return "bonds"
        case HostVlan():
            return "vlans"
        case _:
            return "ethernets"


def _link(link: Link, network: HostNetwork) -> dict[str, Any]:
    rest = _name_servers(network, link.addressing) if link == network.uplink else {"optional": True}
    return _itself(link, network) | _addressing(link.addressing) | rest


def _itself(link: Link, network: HostNetwork) -> dict[str, Any]:
    """Return the keys that depend on the kind of link."""
    match link:
        case HostPort(mac=mac, name=name):
            return {"match": {"macaddress": mac}} | ({"set-name": name} if name else {})
        case HostBond(members=members, mode=mode):
            return {"interfaces": [_id(mac, network) for mac in members], "parameters": _parameters(mode)}
        case HostVlan(vlan=vlan, parent=parent):
            return {"id": vlan, "link": _id(parent, network)}
        case _:
            return {}


def _id(named: str, network: HostNetwork) -> str:
    """Return the document's name of a link given by name or MAC."""
    return next((port.label for port in network.ports if port.mac == named), named)


def _parameters(mode: str) -> dict[str, Any]:
    """Return bond parameters: link monitoring in any mode; with LACP a hash over ports, which spreads connections."""
    lacp = {"lacp-rate": "fast", "transmit-hash-policy": "layer3+4"} if mode == "802.3ad" else {}
    return {"mode": mode, "mii-monitor-interval": MII_MONITOR_MS} | lacp


def _addressing(given: Addressing) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not given:
        found["link-local"] = []
    if given.dhcp:
        found["dhcp4"] = True
        found["dhcp-identifier"] = "mac"
    else:
        found["accept-ra"] = False
    if given.addresses:
        found["addresses"] = list(given.addresses)
    if given.gateway:
        found["routes"] = [{"to": _anywhere(given.gateway), "via": given.gateway}]
    if given.mtu is not None:
        found["mtu"] = given.mtu
    return found


def _anywhere(gateway: str) -> str:
    """Return the default route: netplan before 0.103 does not know `default`."""
    return "::/0" if ip_address(gateway).version == 6 else "0.0.0.0/0"


def _name_servers(network: HostNetwork, given: Addressing) -> dict[str, Any]:
    """Return name servers and search domains; servers of the site replace those of DHCP."""
    if not network.nameservers:
        return {"nameservers": {"search": list(network.search)}} if network.search else {}
    named: dict[str, Any] = {"addresses": list(network.nameservers)}
    if network.search:
        named["search"] = list(network.search)
    overrides = {"dhcp4-overrides": {"use-dns": False}} if given.dhcp else {}
    return {"nameservers": named} | overrides
