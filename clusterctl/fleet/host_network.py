"""A host's network as the site wants it: links, bonds, VLANs, IPoIB; addresses, gateways, name servers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Addressing:
    """What an interface is given. `addresses` with their prefix: `10.20.0.17/16`; `mtu` None: as it comes.

    `dhcp`: it asks for an IPv4 address; a gateway is of the family of one of the addresses.
    """

    addresses: tuple[str, ...] = ()
    dhcp: bool = False
    gateway: str = ""
    mtu: int | None = None


@dataclass(frozen=True, slots=True)
class Port:
    """An Ethernet port, recognised by its MAC; `name` is what it is called on the host (empty: as the kernel does)."""

    mac: str
    name: str = ""
    addressing: Addressing = Addressing()


@dataclass(frozen=True, slots=True)
class Bond:
    """`members` are MACs of ports; `mode` as the kernel names it (`802.3ad`, `active-backup`)."""

    name: str
    members: tuple[str, ...]
    mode: str = "802.3ad"
    addressing: Addressing = Addressing()


@dataclass(frozen=True, slots=True)
class Vlan:
    """`parent` is the name of a bond, or the MAC of a port."""

    name: str
    parent: str
    vlan: int
    addressing: Addressing = Addressing()


@dataclass(frozen=True, slots=True)
class Ipoib:
    """IP over one InfiniBand port: `name` as the kernel calls it (`ib0`); `connected` mode, else datagram."""

    name: str
    connected: bool = False
    addressing: Addressing = Addressing()


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """All of one host. Empty: the installer's own way, an address by DHCP on the port that booted."""

    ports: tuple[Port, ...] = ()
    bonds: tuple[Bond, ...] = ()
    vlans: tuple[Vlan, ...] = ()
    ipoib: tuple[Ipoib, ...] = ()
    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ports or self.bonds or self.vlans or self.ipoib)
