"""A host's network compared with the site's: what differs, and what an operator does about it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from ipaddress import IPv4Interface, ip_address, ip_interface

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.network.host_network import (
    Addressing,
    DefaultRoute,
    HostBond,
    HostIpoib,
    HostNetwork,
    HostNetworkInterface,
    HostPort,
    HostVlan,
    Link,
    ObservedNetwork,
)
from clusterctl.fleet.quantity import Bound, Quantity, exactly

CHECK = "host_network"
NO_PARTNER = "00:00:00:00:00:00"
_AGAIN = "install the node again, or lay the network on it by hand as clusterctl plans it (docs/how-to/host-network.md)"
_CABLE = "see that the cable is plugged in at both ends and the switch's port is on; reseat it, then replace it"

_KINDS = {HostBond: "bond", HostVlan: "VLAN", HostIpoib: "IPoIB interface"}


def judge_network(wanted: HostNetwork, seen: ObservedNetwork) -> tuple[Finding, ...]:
    """Return at least one finding; a single PASS where all that the site defines is so. Nothing else is judged."""
    found = (
        *(finding for link in wanted.links for finding in _link(link, wanted, seen)),
        *_routes(wanted, seen),
        *_name_servers(wanted, seen),
    )
    return found or (passed(CHECK, "the host's network is as the site wants it"),)


_Values = tuple[Quantity | str | None, Bound | str]
"""What was measured, and what is expected."""


def _fail(code: Code, subject: str, cause: str, values: _Values, remedy: str, *, may_change: bool = False) -> Finding:
    measured, expected = values
    return Finding(
        check=CHECK,
        verdict=Verdict.FAIL,
        code=code,
        subject=subject,
        cause=cause,
        measured=measured,
        expected=expected,
        remedy=remedy,
        deterministic=not may_change,
    )


def _warn(code: Code, subject: str, cause: str, values: _Values, remedy: str) -> Finding:
    return replace(_fail(code, subject, cause, values, remedy), verdict=Verdict.WARN)


def _link(link: Link, wanted: HostNetwork, seen: ObservedNetwork) -> Iterator[Finding]:
    interface = seen.port(link.mac) if isinstance(link, HostPort) else seen.named(link.name)
    if interface is None:
        yield _absent(link)
        return
    match link:
        case HostPort():
            yield from _port(link, interface, wanted)
        case HostBond():
            yield from _bond(link, interface)
        case HostVlan():
            yield from _vlan(link, interface, seen)
        case HostIpoib():
            yield from _ipoib(link, interface)
    yield from _addressing(link.addressing, interface)


def _absent(link: Link) -> Finding:
    if isinstance(link, HostPort):
        cause = f"the host has no port with the MAC {link.mac}"
        remedy = "see that the card is seated and its driver is loaded; after an exchange run clusterctl discover"
        return _fail(Code.PORT_ABSENT, link.label, cause, ("absent", link.mac), remedy)
    what = _KINDS[type(link)]
    if isinstance(link, HostIpoib):
        remedy = "see that ib_ipoib is loaded and the adapter answers (ibstat)"
        return _fail(
            Code.INTERFACE_ABSENT, link.name, f"the host has no {what} {link.name}", ("absent", link.name), remedy
        )
    return _fail(Code.INTERFACE_ABSENT, link.name, f"the host has no {what} {link.name}", ("absent", link.name), _AGAIN)


def _port(port: HostPort, interface: HostNetworkInterface, wanted: HostNetwork) -> Iterator[Finding]:
    if port.name and interface.name != port.name:
        cause = f"the port {port.mac} has another name than the site gives it"
        yield _warn(Code.INTERFACE_NAME, interface.name, cause, (interface.name, port.name), "reboot the node")
    bond = wanted.bond_of(port.mac)
    if bond is not None and interface.master != bond.name:
        cause = f"the port is no member of {bond.name}"
        yield _fail(Code.NOT_BONDED, interface.name, cause, (interface.master or "no bond", bond.name), _AGAIN)
    if bond is not None or port.addressing or wanted.vlans_on(port):
        yield from _port_link(interface, bond)


def _port_link(interface: HostNetworkInterface, bond: HostBond | None) -> Iterator[Finding]:
    """Judge the link of a port that the site uses."""
    if not interface.carrier or interface.member_up is False:
        cause = f"a member of {bond.name} has no link" if bond else "the port has no link"
        yield _fail(Code.NO_LINK, interface.name, cause, ("down", "up"), _CABLE, may_change=True)


def _bond(bond: HostBond, interface: HostNetworkInterface) -> Iterator[Finding]:
    if interface.bond is None:
        yield _fail(Code.NOT_BONDED, bond.name, f"{bond.name} is no bond", ("no bond", bond.mode), _AGAIN)
        return
    if interface.bond.mode != bond.mode:
        yield _fail(Code.BOND_MODE, bond.name, "the bond is of another mode", (interface.bond.mode, bond.mode), _AGAIN)
        return
    if interface.bond.partner == NO_PARTNER:
        cause = "no switch uses LACP with the bond"
        remedy = "configure the switch's ports of this host as one LACP group, then look at the cables"
        yield _fail(Code.NO_LACP_PARTNER, bond.name, cause, ("no partner", "a partner"), remedy, may_change=True)
    elif interface.bond.active is not None and interface.bond.active < len(bond.members):
        cause = "not every member is in the bond's aggregate"
        remedy = "see that all its cables lead to one LACP group of the switches"
        yield _fail(
            Code.BOND_INCOMPLETE,
            bond.name,
            cause,
            (Quantity(interface.bond.active, "members"), exactly(len(bond.members), "members")),
            remedy,
            may_change=True,
        )


def _vlan(vlan: HostVlan, interface: HostNetworkInterface, seen: ObservedNetwork) -> Iterator[Finding]:
    below = seen.port(vlan.parent)
    parent = below.name if below is not None else vlan.parent
    if (interface.vlan, interface.parent) != (vlan.vlan, parent):
        cause = "the VLAN is another, or lies on another link"
        is_so = f"{interface.vlan} on {interface.parent}" if interface.vlan is not None else "no VLAN"
        yield _fail(Code.VLAN_WRONG, vlan.name, cause, (is_so, f"{vlan.vlan} on {parent}"), _AGAIN)


def _ipoib(link: HostIpoib, interface: HostNetworkInterface) -> Iterator[Finding]:
    mode = "connected" if link.connected else "datagram"
    if link.connected and not interface.ipoib_mode:
        remedy = f"look at /sys/class/net/{link.name}/mode on the host"
        yield replace(
            _fail(Code.NOT_REPORTED, link.name, "the host does not report the mode", (None, mode), remedy),
            verdict=Verdict.INCONCLUSIVE,
        )
    elif interface.ipoib_mode and interface.ipoib_mode != mode:
        yield _fail(
            Code.IPOIB_MODE, link.name, "the IPoIB interface is in another mode", (interface.ipoib_mode, mode), _AGAIN
        )
    if link.addressing and not interface.carrier:
        remedy = "see the finding of hca_link about the port; see that a subnet manager runs"
        yield _fail(Code.NO_LINK, link.name, "the IPoIB interface has no link", ("down", "up"), remedy, may_change=True)


def _addressing(wanted: Addressing, interface: HostNetworkInterface) -> Iterator[Finding]:
    has = ", ".join(interface.addresses) or "none"
    same = set(map(ip_interface, interface.addresses))
    for address in wanted.addresses:
        if ip_interface(address) not in same:
            cause = f"the address {address} is missing"
            yield _fail(Code.ADDRESS_MISSING, interface.name, cause, (has, address), _AGAIN)
    if wanted.dhcp and not any(isinstance(address, IPv4Interface) for address in same):
        cause = "DHCP has given no address"
        remedy = "see that the DHCP server answers on this network and knows the port's MAC"
        yield _fail(Code.ADDRESS_MISSING, interface.name, cause, (has, "an address"), remedy, may_change=True)
    yield from _extra_addresses(wanted, interface)
    if wanted.mtu is not None and interface.mtu != wanted.mtu:
        cause = "the MTU is another: large packets are lost or split"
        values = (Quantity(interface.mtu, "bytes"), exactly(wanted.mtu, "bytes"))
        yield _fail(Code.MTU_WRONG, interface.name, cause, values, _AGAIN)


def _extra_addresses(wanted: Addressing, interface: HostNetworkInterface) -> Iterator[Finding]:
    """Yield the IPv4 addresses that the site does not give to an interface without DHCP."""
    if wanted.dhcp or not wanted.addresses:
        return
    extra = set(map(ip_interface, interface.addresses)) - set(map(ip_interface, wanted.addresses))
    values = (", ".join(interface.addresses), ", ".join(wanted.addresses))
    for address in sorted(str(address) for address in extra if isinstance(address, IPv4Interface)):
        cause = f"the interface has an address that the site does not give it: {address}"
        yield _warn(Code.ADDRESS_EXTRA, interface.name, cause, values, _AGAIN)


def _routes(wanted: HostNetwork, seen: ObservedNetwork) -> Iterator[Finding]:
    """Yield missing and unknown default routes. On a link with DHCP the routes of its server are right."""
    planned = set(map(ip_address, filter(None, (link.addressing.gateway for link in wanted.links))))
    found = {ip_address(route.gateway) for route in seen.routes if route.gateway}
    has = ", ".join(map(_route, seen.routes)) or "none"
    for gateway in sorted(planned - found, key=str):
        cause = f"the default route over {gateway} is missing"
        yield _fail(Code.ROUTE_MISSING, "default route", cause, (has, str(gateway)), _AGAIN)
    expected = ", ".join(sorted(map(str, planned))) or "none"
    for route in _extra_routes(wanted, seen, planned):
        cause = f"a default route that the site does not name, over {route.gateway or 'no gateway'}"
        remedy = f"find what sets it on {route.interface} (networkctl status {route.interface}), and remove it"
        yield _fail(Code.ROUTE_EXTRA, "default route", cause, (has, expected), remedy)


def _route(route: DefaultRoute) -> str:
    return f"{route.gateway or 'direct'} on {route.interface}"


def _extra_routes(wanted: HostNetwork, seen: ObservedNetwork, planned: Collection[object]) -> Iterator[DefaultRoute]:
    by_dhcp = {_name(link, seen) for link in wanted.links if link.addressing.dhcp}
    for route in seen.routes:
        known = route.gateway and ip_address(route.gateway) in planned
        if not known and route.interface not in by_dhcp:
            yield route


def _name(link: Link, seen: ObservedNetwork) -> str:
    port = seen.port(link.mac) if isinstance(link, HostPort) else None
    return port.name if port is not None else link.label


def _name_servers(wanted: HostNetwork, seen: ObservedNetwork) -> Iterator[Finding]:
    """Judge the servers that the site names, in any order."""
    if not wanted.nameservers:
        return
    if {*map(ip_address, wanted.nameservers)} != {*map(_server, seen.servers)}:
        has = ", ".join(seen.servers) or "none"
        cause = "the host asks other name servers"
        yield _fail(Code.NAME_SERVERS_WRONG, "name servers", cause, (has, ", ".join(wanted.nameservers)), _AGAIN)
    missing = [domain for domain in wanted.search if domain not in seen.search]
    if missing:
        cause = f"the search domain {missing[0]} is missing"
        has, expected = ", ".join(seen.search) or "none", ", ".join(wanted.search)
        yield _warn(Code.SEARCH_DOMAIN_MISSING, "name servers", cause, (has, expected), _AGAIN)


def _server(text: str) -> object:
    """Return the address, such as `fe80::1%eth0`; text that is none differs from all addresses."""
    try:
        return ip_address(text)
    except ValueError:
        return text
