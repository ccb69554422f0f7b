"""A site's rules for its hosts' networks: rules that hold for many hosts, and what its sheets add for one."""

from __future__ import annotations

import enum
import fnmatch
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.node import Mac

BOOT = "boot"
"""The port that the machine boots from, whatever its slot."""


class AddressSource(enum.Enum):
    """Where an interface's address comes from. NUMBER: network + offset + the number that the node's name ends in."""

    NONE = "none"
    DHCP = "dhcp"
    SHEET = "sheet"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class AddressRule:
    """`network` as `10.20.0.0/16`, empty where none is given; `gateway` lies in it; `where` names file, line, field."""

    source: AddressSource = AddressSource.NONE
    network: str = ""
    offset: int = 0
    gateway: str = ""
    mtu: int | None = None
    where: str = ""


@dataclass(frozen=True, slots=True)
class PortRule:
    """`port`: BOOT, the BMC's name of the slot, or empty where the sheet of addresses has the MAC."""

    name: str
    port: str
    address: AddressRule = AddressRule()


@dataclass(frozen=True, slots=True)
class BondRule:
    """`members` are names of ports."""

    name: str
    members: tuple[str, ...]
    mode: str = "802.3ad"
    address: AddressRule = AddressRule()


@dataclass(frozen=True, slots=True)
class VlanRule:
    """`link` is the name of a bond or port."""

    name: str
    link: str
    vlan: int
    address: AddressRule = AddressRule()


@dataclass(frozen=True, slots=True)
class IpoibRule:
    """`adapter` is the BMC's name of the InfiniBand port; empty: `name` is what the kernel calls it."""

    name: str
    adapter: str = ""
    connected: bool = False
    address: AddressRule = AddressRule()


LinkRule = PortRule | BondRule | VlanRule | IpoibRule


@dataclass(frozen=True, slots=True)
class HostRule:
    """One kind of host: `nodes` are patterns of names."""

    nodes: tuple[str, ...]
    ports: tuple[PortRule, ...] = ()
    bonds: tuple[BondRule, ...] = ()
    vlans: tuple[VlanRule, ...] = ()
    ipoib: tuple[IpoibRule, ...] = ()

    def __iter__(self) -> Iterator[LinkRule]:
        yield from self.ports
        yield from self.bonds
        yield from self.vlans
        yield from self.ipoib

    def fits(self, node: str) -> bool:
        return any(fnmatch.fnmatchcase(node, pattern) for pattern in self.nodes)

    @property
    def management(self) -> LinkRule | None:
        """The link by which the controller reaches the host: the port that boots, or the bond that it is in."""
        boots = [port.name for port in self.ports if port.port == BOOT]
        over = [port for port in self.ports if port.name in boots]
        bonds = [bond for bond in self.bonds if set(bond.members) & set(boots)]
        links: Sequence[LinkRule] = [*over, *bonds]
        return next((link for link in links if link.address.source is not AddressSource.NONE), None)


@dataclass(frozen=True, slots=True)
class NetworkRules:
    """The first rule that fits a node holds for it; one that none fits keeps its installer's way."""

    rules: tuple[HostRule, ...] = ()
    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    def of(self, node: str) -> HostRule | None:
        return next((rule for rule in self.rules if rule.fits(node)), None)


@dataclass(frozen=True, slots=True)
class GivenAddress:
    """A line of the sheet of addresses: `address` with or without its prefix, empty where only the MAC is given."""

    node: str
    interface: str
    address: str
    where: str
    mac: Mac | None = None


@dataclass(frozen=True, slots=True)
class Addressee:
    """A node as far as addresses go: `address` is the host's own where the site's sheet has it; `where` names it."""

    name: str
    bmc: str
    where: str
    address: str = ""
