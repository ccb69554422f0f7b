"""The hosts' networks as the site wants them: `network` of site.yml, its sheet of addresses, and what BMCs report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.site.load import Site
from clusterctl.edges.site.textfile import read_text
from clusterctl.fleet.network.addresses import HostAddresses, assign
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.network.plan import HostParts, plan_network
from clusterctl.fleet.network.rules import (
    Addressee,
    AddressRule,
    AddressSource,
    BondRule,
    GivenAddress,
    HostRule,
    IpoibRule,
    NetworkRules,
    PortRule,
    VlanRule,
)
from clusterctl.fleet.state import NodeState
from clusterctl.formats.site.sheets import read_address_sheet
from clusterctl.site.network import Address, Ipoib, NetworkRule


@dataclass(frozen=True, slots=True)
class HostNetworks:
    """What each host is to have. `addresses` are those of the whole site, none of them twice."""

    rules: NetworkRules
    addresses: HostAddresses

    def network(self, node: NodeState) -> HostNetwork:
        """Return the node's network, empty without one in the site. Raise `UsageError` for an unknown port."""
        parts = HostParts(
            node.name,
            node.inventory,
            node.boot_mac,
            self.addresses.interfaces.get(node.name, {}),
            self.addresses.macs.get(node.name, {}),
        )
        return plan_network(self.rules, parts)

    def address(self, name: str) -> str:
        """Return the host's own address, without prefix, by which it is reached; empty where the site has none."""
        return self.addresses.management.get(name, "")


def host_networks(site: Site) -> HostNetworks:
    """Read the sheet of addresses. Raise `UsageError` with file, line and field of the first wrong one."""
    rules = network_rules(site)
    nodes = [Addressee(node.name, node.bmc, node.where, node.address) for node in site.nodes]
    return HostNetworks(rules, assign(rules, nodes, _given(site)))


def _given(site: Site) -> tuple[GivenAddress, ...]:
    name = site.settings.network.addresses
    if not name:
        return ()
    file = Path(site.path(name))
    return read_address_sheet(read_text(file, site.where("network", "addresses")), str(file))


def network_rules(site: Site) -> NetworkRules:
    """Return the rules of `network`."""
    network = site.settings.network
    rules = tuple(_rule(site, rule, index) for index, rule in enumerate(network.rules))
    return NetworkRules(rules, network.nameservers, network.search)


def _rule(site: Site, rule: NetworkRule, index: int) -> HostRule:
    def at(kind: str, number: int, own: Address) -> AddressRule:
        where = site.where("network", "rules", index, kind, number)
        return AddressRule(AddressSource(own.address), own.network or "", own.offset, own.gateway or "", own.mtu, where)

    return HostRule(
        nodes=rule.nodes,
        ports=tuple(PortRule(p.name, p.port, at("ports", n, p)) for n, p in enumerate(rule.ports)),
        bonds=tuple(BondRule(b.name, b.members, b.mode, at("bonds", n, b)) for n, b in enumerate(rule.bonds)),
        vlans=tuple(VlanRule(v.name, v.link, v.id, at("vlans", n, v)) for n, v in enumerate(rule.vlans)),
        ipoib=tuple(_rails(rule.ipoib, site.where("network", "rules", index, "ipoib"))) if rule.ipoib else (),
    )


def _rails(ipoib: Ipoib, where: str) -> Iterator[IpoibRule]:
    for at, (rail, name) in enumerate(ipoib.interfaces()):
        network = ipoib.network_of(rail)
        address = AddressRule(AddressSource(ipoib.address), network, ipoib.offset, mtu=ipoib.mtu, where=where)
        yield IpoibRule(name, ipoib.adapters[at] if ipoib.adapters else "", ipoib.connected, address)
