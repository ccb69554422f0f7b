"""A host's network as files of systemd-networkd (systemd.network(5), .netdev(5), .link(5)), and the rules of udev for
IPoIB interfaces. A DHCP server knows the host by its MAC, as it knew the firmware.

Written for systemd 249 (Ubuntu 22.04) and later; booted with 252.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.network.host_network import Addressing, Bond, HostNetwork, Ipoib, Link, Port, Vlan

FOLDER = "/etc/systemd/network"
UDEV_RULES = "/etc/udev/rules.d/70-clusterctl-ipoib.rules"
"""Before 80-net-setup-link.rules, which names only what has no name yet."""
HEADER = "# Written by clusterctl from the site file: changes here do not last.\n"
PERMANENT = "PermanentMACAddress"
"""How a port is recognised: a bond's members all show the bond's MAC, their permanent one stays."""

Section = tuple[str, Sequence[tuple[str, str]]]


def files(network: HostNetwork, *, by: str = PERMANENT) -> dict[str, str]:
    """Path → text of everything that networkd and udev need; nothing of it is secret (mode 0644).

    `by`: `MACAddress` for virtual ports without a permanent address (veth).
    """
    found: dict[str, str] = {}
    for link in network.links:
        stem = f"{FOLDER}/10-clusterctl-{link.label}"
        if isinstance(link, Port) and link.name:
            found[f"{stem}.link"] = _text(("Match", [(by, link.mac)]), ("Link", [("Name", link.name)]))
        device = _device(link)
        if device:
            found[f"{stem}.netdev"] = _text(*device)
        found[f"{stem}.network"] = _text(*_network(link, network, by))
    return found | udev_rules(network)


def udev_rules(network: HostNetwork) -> dict[str, str]:
    """The rules that name IPoIB interfaces by their port's GUID and set their mode; no file where neither is wanted.

    The last eight bytes of an IPoIB address are the port's GUID; those before it change with every load of the driver.
    The mode is set here since systemd 252 passes over the section [IPoIB] of a .network file that its manual describes.
    """
    lines = [_udev_rule(link) for link in network.ipoib if link.guid or link.connected]
    return {UDEV_RULES: HEADER + "".join(lines)} if lines else {}


def _udev_rule(link: Ipoib) -> str:
    known_by = f'ATTR{{address}}=="*:{_colons(link.guid)}"' if link.guid else f'KERNEL=="{link.name}"'
    rule = ['ACTION=="add"', 'SUBSYSTEM=="net"', 'ATTR{type}=="32"', known_by]
    if link.connected:
        rule.append('ATTR{mode}="connected"')
    if link.guid:
        rule.append(f'NAME="{link.name}"')
    return ", ".join(rule) + "\n"


def _colons(guid: str) -> str:
    return ":".join(guid[at : at + 2] for at in range(0, len(guid), 2))


def _device(link: Link) -> tuple[Section, ...]:
    """What has to be made before it can be configured."""
    match link:
        case Bond(name=name, mode=mode):
            lacp = [("LACPTransmitRate", "fast"), ("TransmitHashPolicy", "layer3+4")] if mode == "802.3ad" else []
            bond = [("Mode", mode), ("MIIMonitorSec", "100ms"), *lacp]
            return ("NetDev", [("Name", name), ("Kind", "bond"), *_mtu(link)]), ("Bond", bond)
        case Vlan(name=name, vlan=vlan):
            return ("NetDev", [("Name", name), ("Kind", "vlan"), *_mtu(link)]), ("VLAN", [("Id", str(vlan))])
        case _:
            return ()


def _network(link: Link, network: HostNetwork, by: str) -> Iterator[Section]:
    uplink = link == network.uplink
    match = (by, link.mac) if isinstance(link, Port) else ("Name", link.name)
    yield "Match", [match]
    yield "Link", [*_mtu(link), ("RequiredForOnline", "yes" if uplink else "no")]
    yield "Network", [*_place(link, network), *_addressing(link.addressing), *(_names(network) if uplink else ())]
    if link.addressing.dhcp:
        own_names = [("UseDNS", "no")] if uplink and network.nameservers else []
        yield "DHCPv4", [("ClientIdentifier", "mac"), *own_names]
    if link.addressing.gateway:
        yield "Route", [("Gateway", link.addressing.gateway)]


def _mtu(link: Link) -> list[tuple[str, str]]:
    return [("MTUBytes", str(link.addressing.mtu))] if link.addressing.mtu is not None else []


def _place(link: Link, network: HostNetwork) -> Iterator[tuple[str, str]]:
    """What it is part of, and what lies on it."""
    bond = network.bond_of(link.mac) if isinstance(link, Port) else None
    if bond is not None:
        yield "Bond", bond.name
    for vlan in network.vlans_on(link):
        yield "VLAN", vlan.name
    if isinstance(link, Bond | Vlan):
        yield "ConfigureWithoutCarrier", "yes"


def _addressing(given: Addressing) -> Iterator[tuple[str, str]]:
    if not given:
        yield "LinkLocalAddressing", "no"
    if given.dhcp:
        yield "DHCP", "ipv4"
    else:
        yield "IPv6AcceptRA", "no"
    for address in given.addresses:
        yield "Address", address


def _names(network: HostNetwork) -> Iterator[tuple[str, str]]:
    for server in network.nameservers:
        yield "DNS", server
    if network.search:
        yield "Domains", " ".join(network.search)


def _text(*sections: Section) -> str:
    """Sections that hold nothing are left out."""
    parts = [f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in pairs) for name, pairs in sections if pairs]
    return HEADER + "\n".join(parts)
