"""The network of one host: the site's rule, its addresses, and the ports that its BMC reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.host_network import Addressing, HostBond, HostIpoib, HostNetwork, HostPort, HostVlan
from clusterctl.fleet.network.rules import BOOT, AddressRule, AddressSource, HostRule, IpoibRule, NetworkRules, PortRule
from clusterctl.fleet.node import Hca, Inventory, Mac, Nic


@dataclass(frozen=True, slots=True)
class HostParts:
    """What is known of a node's ports. `boot_mac`: of the port that it boots from, by the site's word.

    addresses  interface → address with prefix
    macs       interface → MAC, by the sheet of addresses
    """

    node: str
    inventory: Inventory | None = None
    boot_mac: Mac | None = None
    addresses: Mapping[str, str] = field(default_factory=dict)
    macs: Mapping[str, Mac] = field(default_factory=dict)

    @property
    def nics(self) -> Sequence[Nic]:
        return (self.inventory.nics if self.inventory else None) or ()

    @property
    def hcas(self) -> Sequence[Hca]:
        return (self.inventory.hcas if self.inventory else None) or ()


def plan_network(rules: NetworkRules, parts: HostParts) -> HostNetwork:
    """Return the network; empty where no rule fits the node. Raise `UsageError` for an unknown port or adapter."""
    rule = rules.of(parts.node)
    if rule is None:
        return HostNetwork()
    macs = _macs(rule, parts)
    return HostNetwork(
        ports=tuple(
            HostPort(macs[one.name], one.name, _addressing(one.name, one.address, parts)) for one in rule.ports
        ),
        bonds=tuple(
            HostBond(
                one.name,
                tuple(macs[member] for member in one.members),
                one.mode,
                _addressing(one.name, one.address, parts),
            )
            for one in rule.bonds
        ),
        vlans=tuple(
            HostVlan(one.name, macs.get(one.link, one.link), one.vlan, _addressing(one.name, one.address, parts))
            for one in rule.vlans
        ),
        ipoib=tuple(
            HostIpoib(one.name, one.connected, _addressing(one.name, one.address, parts), _guid(one, parts))
            for one in rule.ipoib
        ),
        nameservers=rules.nameservers,
        search=rules.search,
    )


def _addressing(name: str, rule: AddressRule, parts: HostParts) -> Addressing:
    address = parts.addresses.get(name, "")
    return Addressing(
        addresses=(address,) if address else (),
        dhcp=rule.source is AddressSource.DHCP,
        gateway=rule.gateway,
        mtu=rule.mtu,
    )


def _macs(rule: HostRule, parts: HostParts) -> Mapping[str, Mac]:
    """Return port's name → its MAC."""
    found: dict[str, Mac] = {}
    for port in rule.ports:
        mac = parts.macs.get(port.name) or _mac(port, parts)
        twin = next((name for name, other in found.items() if other == mac), "")
        if twin:
            raise _unknown(
                parts, f"{port.name} and {twin} are the same port, {mac}", "name another slot for one of them"
            )
        found[port.name] = mac
    return found


def _known_ports(parts: HostParts) -> str:
    if not parts.inventory:
        return "it was not discovered yet"
    ports = ", ".join(f"{nic.slot} {nic.mac}" for nic in parts.nics) or "no Ethernet port"
    return f"its BMC reports {ports}"


def _mac(port: PortRule, parts: HostParts) -> Mac:
    known_ports = _known_ports(parts)
    remedy = f"write the port's MAC into the column mac of the sheet of addresses ({parts.node},{port.name})"
    if port.port == BOOT:
        return _boot_mac(port, parts, known_ports)
    fitting = [nic for nic in parts.nics if port.port and nic.slot == port.port]
    if not fitting:
        where = f"in slot {port.port!r}" if port.port else "and no slot is named"
        raise _unknown(parts, f"no sheet has the MAC of {port.name} {where}; {known_ports}", remedy)
    if len(fitting) > 1:
        raise _unknown(parts, f"{port.port!r} is the slot of {len(fitting)} ports; {known_ports}", remedy)
    return fitting[0].mac


def _boot_mac(port: PortRule, parts: HostParts, known_ports: str) -> Mac:
    """Return the site's boot MAC, else that of the only port that boots, else that of the only port."""
    booting = [nic.mac for nic in parts.nics if nic.boots] or [nic.mac for nic in parts.nics]
    if parts.boot_mac is not None:
        return parts.boot_mac
    if len(booting) == 1:
        return booting[0]
    remedy = "write it into the column boot_mac of the machines' sheet"
    raise _unknown(parts, f"which port is {port.name}, from which it boots, is not known; {known_ports}", remedy)


def _guid(rule: IpoibRule, parts: HostParts) -> str:
    if not rule.adapter:
        return ""
    fitting = [hca for hca in parts.hcas if hca.slot == rule.adapter]
    if len(fitting) == 1 and fitting[0].guid:
        return fitting[0].guid
    slots = ", ".join(hca.slot for hca in parts.hcas) or "none"
    if fitting:
        message = f"the BMC does not report the GUID of the InfiniBand port {rule.adapter}"
        raise _unknown(parts, message, "leave adapters out, and name the interfaces as the kernel does")
    message = f"it has no InfiniBand port {rule.adapter!r}, for {rule.name}; its BMC reports {slots}"
    raise _unknown(parts, message, "correct the adapters in network.rules, or discover the node again")


def _unknown(parts: HostParts, message: str, remedy: str) -> UsageError:
    return UsageError(message, where=parts.node, remedy=remedy)
