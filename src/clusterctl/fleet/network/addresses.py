"""Which address each interface of each host has, by the site's word alone: nothing is guessed, none is given twice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_interface, ip_network

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.rules import (
    Addressee,
    AddressRule,
    AddressSource,
    GivenAddress,
    HostRule,
    LinkRule,
    NetworkRules,
)
from clusterctl.fleet.node import Mac

_NUMBER = re.compile(r"(?<![0-9])[0-9]+$")
_OWN = "give each machine and each service an address of its own"


@dataclass(frozen=True, slots=True)
class HostAddresses:
    """interfaces  node → interface → address with prefix
    management  node → the address by which the controller reaches the host, where the site has one
    macs        node → interface → MAC, where the sheet of addresses has one
    """

    interfaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    management: Mapping[str, str] = field(default_factory=dict)
    macs: Mapping[str, Mapping[str, Mac]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Written:
    """An address with or without prefix, and the place where an operator wrote it, or the rule that makes it."""

    text: str
    where: str


def assign(rules: NetworkRules, nodes: Sequence[Addressee], given: Sequence[GivenAddress] = ()) -> HostAddresses:
    """Return the addresses of the site. Raise `UsageError` with place of the first that is missing or collides."""
    sheet, macs = _sheet(rules, nodes, given)
    taken = _Taken(nodes, rules)
    interfaces: dict[str, Mapping[str, str]] = {}
    management: dict[str, str] = {}
    for node in nodes:
        rule = rules.of(node.name)
        written = _written(node, rule, sheet)
        for name, found in written.items():
            taken.take(found, f"{name} of {node.name}")
        interfaces[node.name] = {name: found.text for name, found in written.items()}
        main = rule.management if rule else None
        if main is not None and main.name in written:
            management[node.name] = written[main.name].text.partition("/")[0]
        elif node.address:
            taken.take(_own(node, main), node.name)
            management[node.name] = node.address
    return HostAddresses(interfaces, management, macs)


class _Taken:
    """Every address in use, and its owner."""

    def __init__(self, nodes: Sequence[Addressee], rules: NetworkRules) -> None:
        gateways = {link.address.gateway for rule in rules.rules for link in rule} - {""}
        self._owners = {ip_address(gateway): "the gateway" for gateway in gateways}
        self._owners |= {ip_address(server): "a name server" for server in rules.nameservers}
        self._owners |= {ip_address(node.bmc): f"the BMC of {node.name}" for node in nodes if node.bmc}

    def take(self, found: _Written, owner: str) -> None:
        address = ip_address(found.text.partition("/")[0])
        if address in self._owners:
            message = f"{address}, for {owner}, is taken by {self._owners[address]}"
            raise UsageError(message, where=found.where, remedy=_OWN)
        self._owners[address] = owner


_Sheet = Mapping[tuple[str, str], GivenAddress]


def _sheet(
    rules: NetworkRules, nodes: Sequence[Addressee], given: Sequence[GivenAddress]
) -> tuple[_Sheet, Mapping[str, Mapping[str, Mac]]]:
    """Return the addresses of the lines, by node and interface, and the MACs by node."""
    names = {node.name for node in nodes}
    lines: dict[tuple[str, str], GivenAddress] = {}
    macs: dict[str, dict[str, Mac]] = {}
    rows_by_mac: dict[Mac, GivenAddress] = {}
    for row in given:
        _require_known(row, names, rules)
        first = lines.setdefault((row.node, row.interface), row)
        if first is not row:
            message = f"{row.interface} of {row.node} is given twice, first at {first.where}"
            raise UsageError(message, where=f"{row.where} interface", remedy="keep one of the lines")
        if row.mac is not None:
            other = rows_by_mac.setdefault(row.mac, row)
            if other is not row:
                message = f"{row.mac} is given twice, first at {other.where}"
                raise UsageError(
                    message, where=f"{row.where} mac", remedy="each port has its own: correct the wrong one"
                )
            macs.setdefault(row.node, {})[row.interface] = row.mac
    return {key: row for key, row in lines.items() if row.address}, macs


def _require_known(row: GivenAddress, names: set[str], rules: NetworkRules) -> None:
    if row.node not in names:
        message = f"there is no node {row.node!r} in the site"
        raise UsageError(message, where=f"{row.where} node", remedy="correct the name, or remove the line")
    rule = rules.of(row.node)
    links = {link.name: link for link in rule or ()}
    if row.interface not in links:
        message = f"{row.node} has no interface {row.interface!r}"
        known = f"its interfaces are {', '.join(links)}" if links else "no rule of network.rules fits this node"
        raise UsageError(message, where=f"{row.where} interface", remedy=known)
    source = links[row.interface].address.source
    if row.address and source is not AddressSource.SHEET:
        message = f"{row.interface} has its address by another rule: {source.value}"
        raise UsageError(message, where=f"{row.where} address", remedy=f"write address: sheet for {row.interface}")


def _written(node: Addressee, rule: HostRule | None, sheet: _Sheet) -> Mapping[str, _Written]:
    """Return interface → its address with prefix, for those that have one in the site."""
    found: dict[str, _Written] = {}
    for link in rule or ():
        main = rule is not None and link == rule.management
        if link.address.source is AddressSource.SHEET:
            found[link.name] = _from_sheet(node, link, sheet.get((node.name, link.name)), main=main)
        elif link.address.source is AddressSource.NUMBER:
            found[link.name] = _by_number(node, link, main=main)
    return found


def _from_sheet(node: Addressee, link: LinkRule, row: GivenAddress | None, *, main: bool) -> _Written:
    if row is not None:
        found = _whole(_Written(row.address, f"{row.where} address"), link.address)
        _require_agreement(node, found, main=main)
        return found
    if main and node.address:
        return _own(node, link)
    raise UsageError(
        f"no sheet has an address for {link.name} of {node.name}",
        where=link.address.where,
        remedy=f"add a line to the sheet that network.addresses names: {node.name},{link.name},ADDRESS",
    )


def _by_number(node: Addressee, link: LinkRule, *, main: bool) -> _Written:
    number = _NUMBER.search(node.name)
    if number is None:
        remedy = f"write address: sheet for {link.name}, and the addresses into a sheet"
        message = f"the name {node.name} ends in no number, from which {link.name} would have its address"
        raise UsageError(message, where=link.address.where, remedy=remedy)
    network = _network(link.address.network)
    at = link.address.offset + int(number.group())
    if at >= network.num_addresses:
        message = f"{node.name} would have address {at} of {network}, which ends before it"
        raise UsageError(message, where=link.address.where, remedy="widen the network, or lower the offset")
    found = _whole(_Written(str(network[at]), link.address.where), link.address)
    _require_agreement(node, found, main=main)
    return found


def _own(node: Addressee, link: LinkRule | None) -> _Written:
    """Return the node's own address, as the sheet of machines has it."""
    written = _Written(node.address, f"{node.where} address")
    return _whole(written, link.address) if link is not None and link.address.network else written


def _require_agreement(node: Addressee, found: _Written, *, main: bool) -> None:
    if main and node.address and found.text.partition("/")[0] != node.address:
        message = f"{node.name} is listed with {node.address}, and {found.text} at {found.where}"
        raise UsageError(
            message, where=f"{node.where} address", remedy="write the same address in both places, or in one only"
        )


def _whole(found: _Written, rule: AddressRule) -> _Written:
    """Return it with its prefix; an address of one machine within the rule's network."""
    if not rule.network and "/" not in found.text:
        message = f"{found.text} has no prefix, and the plan has no network for its interface"
        raise UsageError(message, where=found.where, remedy=f"write it like {found.text}/24, or name the network")
    network = _network(rule.network) if rule.network else ip_interface(found.text).network
    address = ip_address(found.text.partition("/")[0])
    if address not in network or ("/" in found.text and ip_interface(found.text).network != network):
        remedy = "correct the address, or the network of its interface"
        raise UsageError(f"{found.text} is no address of {network}", where=found.where, remedy=remedy)
    if address in _edges(network):
        message = f"{address} is the first or last of {network}, which no host may have"
        raise UsageError(message, where=found.where, remedy="give the host another one")
    return _Written(f"{address}/{network.prefixlen}", found.where)


@lru_cache(maxsize=1024)
def _network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text)


def _edges(network: IPv4Network | IPv6Network) -> set[IPv4Address | IPv6Address]:
    """Return the network's own address and IPv4's broadcast; /31, /127 and single addresses have neither."""
    if network.num_addresses <= 2:
        return set()
    return {network[0], network[-1]} if network.version == 4 else {network[0]}
