"""A host's network as files of systemd-networkd (systemd.network(5), .netdev(5), .link(5)), and udev rules for IPoIB.

Written for systemd 249 (Ubuntu 22.04) and later; booted with 252. The DHCP client identifier is the MAC, as with the
firmware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clusterctl.fleet.network.host_network import Addressing, HostBond, HostIpoib, HostNetwork, HostPort, HostVlan, Link

FOLDER = "/etc/systemd/network"
UDEV_RULES = "/etc/udev/rules.d/70-clusterctl-ipoib.rules"
"""Runs before 80-net-setup-link.rules, which names only interfaces without a name."""
HEADER = "# Written by clusterctl from the site file: changes here do not last.\n"
PERMANENT = "PermanentMACAddress"
"""Key that identifies a port: members of a bond show the bond's MAC, but keep their permanent MAC."""

Section = tuple[str, Sequence[tuple[str, str]]]


def files(network: HostNetwork, *, by: str = PERMANENT) -> dict[str, str]:
    """Return path → text of all files for networkd and udev; they hold no secret (mode 0644).

    `by`: `MACAddress` for virtual ports without a permanent address (veth).
    """
    found: dict[str, str] = {}
    for link in network.links:
        stem = f"{FOLDER}/10-clusterctl-{link.label}"
        if isinstance(link, HostPort) and link.name:
            found[f"{stem}.link"] = _text(("Match", [(by, link.mac)]), ("Link", [("Name", link.name)]))
        device = _device(link)
        if device:
            found[f"{stem}.netdev"] = _text(*device)
        found[f"{stem}.network"] = _text(*_network(link, network, by))
    return found | udev_rules(network)


def udev_rules(network: HostNetwork) -> dict[str, str]:
    """Return the rules that name IPoIB interfaces by GUID and set their mode; no file if neither is requested.

    The last eight bytes of an IPoIB address are the port's GUID; the bytes before change with each load of the driver.
    The mode is set here because systemd 252 ignores the documented section [IPoIB] of a .network file.
    """
    lines = [_udev_rule(link) for link in network.ipoib if link.guid or link.connected]
    return {UDEV_RULES: HEADER + "".join(lines)} if lines else {}


def _udev_rule(link: HostIpoib) -> str:
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
    """Return the sections that create a virtual link."""
    match link:
        case HostBond(name=name, mode=mode):
            lacp = [("LACPTransmitRate", "fast"), ("TransmitHashPolicy", "layer3+4")] if mode == "802.3ad" else []
            bond = [("Mode", mode), ("MIIMonitorSec", "100ms"), *lacp]
            return ("NetDev", [("Name", name), ("Kind", "bond"), *_mtu(link)]), ("Bond", bond)
        case HostVlan(name=name, vlan=vlan):
            return ("NetDev", [("Name", name), ("Kind", "vlan"), *_mtu(link)]), ("VLAN", [("Id", str(vlan))])
        case _:
            return ()


def _network(link: Link, network: HostNetwork, by: str) -> Iterator[Section]:
    uplink = link == network.uplink
    match = (by, link.mac) if isinstance(link, HostPort) else ("Name", link.name)
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
    """Yield the bond of a link, and the VLANs on it."""
    bond = network.bond_of(link.mac) if isinstance(link, HostPort) else None
    if bond is not None:
        yield "Bond", bond.name
    for vlan in network.vlans_on(link):
        yield "VLAN", vlan.name
    if isinstance(link, HostBond | HostVlan):
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
    """Return the file's text without empty sections."""
    parts = [f"[{name}]\n" + "".join(f"{key}={value}\n" for key, value in pairs) for name, pairs in sections if pairs]
    return HEADER + "\n".join(parts)
