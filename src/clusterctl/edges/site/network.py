"""`network` of site.yml: what the hosts' own network shall be (docs/host-network.md)."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator

from clusterctl.edges.site.fields import Strict, Words, shaped

Mode = Literal["802.3ad", "active-backup", "balance-xor", "balance-rr", "balance-tlb", "balance-alb", "broadcast"]
ETHERNET_MTU = 1500
MAX_RAILS = 64
RAIL = "{rail}"


def _ip(value: str) -> str:
    try:
        return str(ip_address(value.strip()))
    except ValueError:
        raise ValueError("must be an IP address, like 10.20.0.1") from None


def _network(value: str) -> str:
    try:
        return str(ip_network(value.strip()))
    except ValueError:
        raise ValueError("must be a network, like 10.20.0.0/16, without host bits") from None


_interface = shaped(
    r"[A-Za-z][A-Za-z0-9_.-]{0,14}", "the name of an interface: a letter, then letters, digits and _ . -, 15 at most"
)
_not_the_kernels = shaped(
    r"(?!((eth|ib|wlan)[0-9]+|lo)$).*", "another name than those that the kernel itself gives to whatever comes first"
)
Interface = Annotated[str, AfterValidator(_interface)]
Given = Annotated[str, AfterValidator(_interface), AfterValidator(_not_the_kernels)]
Ip = Annotated[str, AfterValidator(_ip)]
Net = Annotated[str, AfterValidator(_network)]
Domain = Annotated[
    str, AfterValidator(shaped(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", "a domain, like cluster.example"))
]
Mtu = Annotated[int, Field(ge=576, le=65520, strict=True)]


class Address(Strict):
    """Fields that every kind of interface has."""

    address: Literal["none", "dhcp", "sheet", "number"] = "none"
    network: Net | None = None
    offset: Annotated[int, Field(ge=0, le=2**32, strict=True)] = 0
    gateway: Ip | None = None
    mtu: Mtu | None = None

    @field_validator("gateway")
    @classmethod
    def _reachable(cls, value: str | None, info: ValidationInfo) -> str | None:
        network = info.data.get("network")
        if value is not None and network is None:
            raise ValueError("needs the network that it lies in, as network")
        if value is not None and ip_address(value) not in ip_network(str(network)):
            raise ValueError(f"must lie in {network}")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Address:
        if self.address == "number" and self.network is None:
            raise ValueError("address: number needs the network that it counts in, as network")
        if self.offset and self.address != "number":
            raise ValueError("offset is for address: number")
        if self.gateway and self.address in ("none", "dhcp"):
            raise ValueError(f"a gateway has no use with address: {self.address}")
        return self


class Port(Address):
    name: Given
    port: Annotated[str, Field(description="boot, or the BMC's name of the slot")] = ""


class Bond(Address):
    name: Given
    members: Annotated[tuple[Interface, ...], Field(min_length=1)]
    mode: Mode = "802.3ad"


class Vlan(Address):
    name: Given
    link: Interface
    id: Annotated[int, Field(ge=1, le=4094, strict=True)]


class Ipoib(Strict):
    """All rails alike; `{rail}` stands for the rail's number. Its network is checked once that is filled in."""

    rails: Annotated[int, Field(ge=1, le=MAX_RAILS, strict=True)]
    first_rail: Annotated[int, Field(ge=0, le=1, strict=True)] = 0
    adapters: Annotated[tuple[Words, ...], Field(description="the BMC's names of the ports, by rail")] = ()
    name: Annotated[str, AfterValidator(shaped(r".*\{rail\}.*", "a name with {rail} in it, like rail{rail}"))] = ""
    connected: Annotated[bool, Field(strict=True)] = False
    address: Literal["none", "sheet", "number"] = "none"
    network: str | None = None
    offset: Annotated[int, Field(ge=0, le=2**32, strict=True)] = 0
    mtu: Mtu | None = None

    @field_validator("network")
    @classmethod
    def _network(cls, value: str | None, info: ValidationInfo) -> str | None:
        first, rails = info.data.get("first_rail", 0), info.data.get("rails", 1)
        if value is not None:
            for rail in range(first, first + rails):
                _network(value.replace(RAIL, str(rail)))
        return value

    @model_validator(mode="after")
    def _whole(self) -> Ipoib:
        if self.adapters and len(self.adapters) != self.rails:
            raise ValueError(f"adapters must name one port for each of the {self.rails} rails")
        if len(set(self.adapters)) < len(self.adapters):
            raise ValueError("adapters names a port twice")
        if self.address == "number" and self.network is None:
            raise ValueError("address: number needs the network that it counts in, as network")
        limit = 65520 if self.connected else 4092
        if self.mtu is not None and self.mtu > limit:
            raise ValueError(f"mtu is {limit} at most in {'connected' if self.connected else 'datagram'} mode")
        for _, name in self.interfaces():
            _interface(name)
            if self.adapters:
                _not_the_kernels(name)
        return self

    def interfaces(self) -> Iterator[tuple[int, str]]:
        """(rail, the interface's name)."""
        template = self.name or ("rail{rail}" if self.adapters else "ib{rail}")
        for rail in range(self.first_rail, self.first_rail + self.rails):
            yield rail, template.replace(RAIL, str(rail))

    def network_of(self, rail: int) -> str:
        return str(ip_network(self.network.replace(RAIL, str(rail)))) if self.network else ""


class Rule(Strict):
    nodes: Annotated[tuple[Words, ...], Field(min_length=1, description="names of nodes, * and ? as in a shell")] = (
        "*",
    )
    ports: tuple[Port, ...] = ()
    bonds: tuple[Bond, ...] = ()
    vlans: tuple[Vlan, ...] = ()
    ipoib: Ipoib | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Rule:
        for complaint in _complaints(self):
            raise ValueError(complaint)
        return self


class NetworkSettings(Strict):
    """The first rule whose `nodes` fit holds for a node."""

    addresses: Annotated[str, Field(description="a CSV of node, interface, address, mac")] = ""
    nameservers: tuple[Ip, ...] = ()
    search: tuple[Domain, ...] = ()
    rules: tuple[Rule, ...] = ()


def _complaints(rule: Rule) -> Iterator[str]:
    """Why the links of a rule cannot be made together."""
    links: list[Port | Bond | Vlan] = [*rule.ports, *rule.bonds, *rule.vlans]
    names = [link.name for link in links] + ([name for _, name in rule.ipoib.interfaces()] if rule.ipoib else [])
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two interfaces are called {name}"
    ports = [port.port for port in rule.ports if port.port]
    for slot in sorted({slot for slot in ports if ports.count(slot) > 1}):
        yield f"port: {slot} is given to two names"
    for version in (4, 6):
        gateways = [link.name for link in links if link.gateway and ip_address(link.gateway).version == version]
        if len(gateways) > 1:
            yield f"{' and '.join(gateways)} have a gateway each: a host has one"
    yield from _bond_complaints(rule)
    yield from _vlan_complaints(rule)


def _bond_complaints(rule: Rule) -> Iterator[str]:
    ports = {port.name: port for port in rule.ports}
    taken: dict[str, str] = {}
    for bond in rule.bonds:
        for member in bond.members:
            if member not in ports:
                yield f"{bond.name} has a member {member!r}, which is none of ports"
            elif taken.setdefault(member, bond.name) != bond.name or bond.members.count(member) > 1:
                yield f"{member} is a member twice"
            elif ports[member].address != "none":
                yield f"{member} is a member of {bond.name}: give the address to the bond"
            elif ports[member].mtu is not None:
                yield f"{member} is a member of {bond.name}: give the mtu to the bond"


def _vlan_complaints(rule: Rule) -> Iterator[str]:
    carriers: dict[str, Port | Bond] = {port.name: port for port in rule.ports}
    carriers |= {bond.name: bond for bond in rule.bonds}
    members = {member: bond.name for bond in rule.bonds for member in bond.members}
    seen: set[tuple[str, int]] = set()
    for vlan in rule.vlans:
        if vlan.link not in carriers:
            yield f"{vlan.name} lies on {vlan.link!r}, which is neither a port nor a bond"
            continue
        if vlan.link in members:
            yield f"{vlan.name} lies on {vlan.link}, a member of {members[vlan.link]}: let it lie on the bond"
        if (vlan.link, vlan.id) in seen:
            yield f"VLAN {vlan.id} stands twice on {vlan.link}"
        seen.add((vlan.link, vlan.id))
        below = carriers[vlan.link].mtu or ETHERNET_MTU
        if vlan.mtu is not None and vlan.mtu > below:
            yield f"{vlan.name} has mtu {vlan.mtu}, more than {below} of {vlan.link} below it"
