"""`network` of a site: the host networks (docs/how-to/host-network.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

from clusterctl.formats.site.yaml_problems import FieldError
from clusterctl.site.fields import Flag, Words, section, shaped

T = TypeVar("T")
Mode = Literal["802.3ad", "active-backup", "balance-xor", "balance-rr", "balance-tlb", "balance-alb", "broadcast"]
ETHERNET_MTU = 1500
MAX_RAILS = 64
RAIL = "{rail}"
_NO_NETWORK = "must be a network, like 10.20.0.0/16, without host bits"


def _ip(value: str) -> str:
    try:
        return str(ip_address(value.strip()))
    except ValueError:
        raise ValueError("must be an IP address, like 10.20.0.1") from None


def _network(value: str) -> str:
    try:
        return str(ip_network(value.strip()))
    except ValueError:
        raise ValueError(_NO_NETWORK) from None


_interface = shaped(
    r"[A-Za-z][A-Za-z0-9_.-]{0,14}", "the name of an interface: a letter, then letters, digits and _ . -, 15 at most"
)
_not_the_kernels = shaped(
    r"(?!((eth|ib|wlan)[0-9]+|lo)$).*",
    "another name than those that the kernel gives to interfaces",
)
Interface = Annotated[str, AfterValidator(_interface)]
Given = Annotated[str, AfterValidator(_interface), AfterValidator(_not_the_kernels)]
Ip = Annotated[str, AfterValidator(_ip)]
Net = Annotated[str, AfterValidator(_network)]
Domain = Annotated[
    str, AfterValidator(shaped(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?", "a domain, like cluster.example"))
]
Mtu = Annotated[int, Field(ge=576, le=65520, strict=True)]


@section
class Address:
    """The fields that every kind of interface has."""

    address: Literal["none", "dhcp", "sheet", "number"] = "none"
    network: Net | None = None
    offset: Annotated[int, Field(ge=0, le=2**32, strict=True)] = 0
    gateway: Ip | None = None
    mtu: Mtu | None = None

    def __post_init__(self) -> None:
        if self.gateway is not None:
            self._check_gateway(self.gateway)
        if self.address == "number" and self.network is None:
            raise ValueError("address: number needs the network that it counts in, as network")
        if self.offset and self.address != "number":
            raise ValueError("offset is for address: number")

    def _check_gateway(self, gateway: str) -> None:
        if self.network is None:
            raise FieldError("gateway", gateway, "needs the network that it lies in, as network")
        if ip_address(gateway) not in ip_network(self.network):
            raise FieldError("gateway", gateway, f"must lie in {self.network}")
        if self.address in ("none", "dhcp"):
            raise ValueError(f"a gateway has no use with address: {self.address}")


@section
class Port(Address):
    name: Given
    port: Annotated[str, Field(description="boot, or the BMC's name of the slot")] = ""


@section
class Bond(Address):
    name: Given
    members: Annotated[tuple[Interface, ...], Field(min_length=1)]
    mode: Mode = "802.3ad"


@section
class Vlan(Address):
    name: Given
    link: Interface
    id: Annotated[int, Field(ge=1, le=4094, strict=True)]


@section
class Ipoib:
    """IP over InfiniBand, the same on all rails; `{rail}` in `name` and `network` is the number of the rail."""

    rails: Annotated[int, Field(ge=1, le=MAX_RAILS, strict=True)]
    first_rail: Annotated[int, Field(ge=0, le=1, strict=True)] = 0
    adapters: Annotated[tuple[Words, ...], Field(description="the BMC's names of the ports, by rail")] = ()
    name: Annotated[str, AfterValidator(shaped(r".*\{rail\}.*", "a name with {rail} in it, like rail{rail}"))] = ""
    connected: Flag = False
    address: Literal["none", "sheet", "number"] = "none"
    network: str | None = None
    offset: Annotated[int, Field(ge=0, le=2**32, strict=True)] = 0
    mtu: Mtu | None = None

    def __post_init__(self) -> None:
        self._check_network()
        self._check_adapters()
        if self.address == "number" and self.network is None:
            raise ValueError("address: number needs the network that it counts in, as network")
        limit = 65520 if self.connected else 4092
        if self.mtu is not None and self.mtu > limit:
            raise ValueError(f"mtu is {limit} at most in {'connected' if self.connected else 'datagram'} mode")

    def _check_adapters(self) -> None:
        if self.adapters and len(self.adapters) != self.rails:
            raise ValueError(f"adapters must name one port for each of the {self.rails} rails")
        if len(set(self.adapters)) < len(self.adapters):
            raise ValueError("adapters names a port twice")
        for _, name in self.interfaces():
            _interface(name)
            if self.adapters:
                _not_the_kernels(name)

    def _check_network(self) -> None:
        for rail in range(self.first_rail, self.first_rail + self.rails):
            try:
                self.network_of(rail)
            except ValueError:
                raise FieldError("network", self.network, _NO_NETWORK) from None

    def interfaces(self) -> Iterator[tuple[int, str]]:
        """Yield the number and the interface name of each rail."""
        template = self.name or ("rail{rail}" if self.adapters else "ib{rail}")
        for rail in range(self.first_rail, self.first_rail + self.rails):
            yield rail, template.replace(RAIL, str(rail))

    def network_of(self, rail: int) -> str:
        """Return the network of one rail; empty where the site gives none."""
        return str(ip_network(self.network.replace(RAIL, str(rail)))) if self.network else ""


@section
class NetworkRule:
    """The interfaces of the nodes that match `nodes`."""

    nodes: Annotated[tuple[Words, ...], Field(min_length=1, description="names of nodes, * and ? as in a shell")] = (
        "*",
    )
    ports: tuple[Port, ...] = ()
    bonds: tuple[Bond, ...] = ()
    vlans: tuple[Vlan, ...] = ()
    ipoib: Ipoib | None = None

    def __post_init__(self) -> None:
        for conflict in _conflicts(self):
            raise ValueError(conflict)


@section
class NetworkSettings:
    """Host networks. A node uses the first rule that matches it."""

    addresses: Annotated[str, Field(description="a CSV of node, interface, address, mac")] = ""
    nameservers: tuple[Ip, ...] = ()
    search: tuple[Domain, ...] = ()
    rules: tuple[NetworkRule, ...] = ()


def _conflicts(rule: NetworkRule) -> Iterator[str]:
    """Yield why the interfaces of a rule cannot exist together."""
    links: list[Port | Bond | Vlan] = [*rule.ports, *rule.bonds, *rule.vlans]
    rails = rule.ipoib.interfaces() if rule.ipoib else ()
    for name in _repeated([*(link.name for link in links), *(name for _, name in rails)]):
        yield f"two interfaces have the name {name}"
    for slot in _repeated([port.port for port in rule.ports if port.port]):
        yield f"port: {slot} is given to two names"
    for link, number in _repeated([(vlan.link, vlan.id) for vlan in rule.vlans]):
        yield f"{link} has VLAN {number} twice"
    yield from _gateway_conflicts(links)
    yield from _bond_conflicts(rule)
    yield from _vlan_conflicts(rule)


def _repeated(items: Sequence[T]) -> list[T]:
    return [item for item, count in Counter(items).items() if count > 1]


def _gateway_conflicts(links: Sequence[Port | Bond | Vlan]) -> Iterator[str]:
    for version in (4, 6):
        gateways = [link.name for link in links if link.gateway and ip_address(link.gateway).version == version]
        if len(gateways) > 1:
            yield f"{' and '.join(gateways)} each have a gateway: a host has one"


def _bond_conflicts(rule: NetworkRule) -> Iterator[str]:
    ports = {port.name: port for port in rule.ports}
    taken: dict[str, str] = {}
    for bond in rule.bonds:
        for member in bond.members:
            if member not in ports:
                yield f"{bond.name} has a member {member!r}, which is not in ports"
            elif taken.setdefault(member, bond.name) != bond.name or bond.members.count(member) > 1:
                yield f"{member} is a member more than once"
            elif ports[member].address != "none":
                yield f"{member} is a member of {bond.name}: give the address to the bond"
            elif ports[member].mtu is not None:
                yield f"{member} is a member of {bond.name}: give the mtu to the bond"


def _vlan_conflicts(rule: NetworkRule) -> Iterator[str]:
    links: tuple[Port | Bond, ...] = (*rule.ports, *rule.bonds)
    carriers = {link.name: link for link in links}
    members = {member: bond.name for bond in rule.bonds for member in bond.members}
    for vlan in rule.vlans:
        if vlan.link not in carriers:
            yield f"{vlan.name} lies on {vlan.link!r}, which is neither a port nor a bond"
        elif vlan.link in members:
            yield f"{vlan.name} lies on {vlan.link}, a member of {members[vlan.link]}: use the bond as its link"
        elif (vlan.mtu or 0) > (below := carriers[vlan.link].mtu or ETHERNET_MTU):
            yield f"{vlan.name} has mtu {vlan.mtu}, more than {below} of {vlan.link} below it"
