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

    def __bool__(self) -> bool:
        """Return whether the interface has an address at all: a trunk or a bond's member has none."""
        return bool(self.addresses or self.dhcp)


@dataclass(frozen=True, slots=True)
class HostPort:
    """An Ethernet port, recognised by its MAC; `name` is what it is called on the host (empty: as the kernel does)."""

    mac: str
    name: str = ""
    addressing: Addressing = Addressing()

    @property
    def label(self) -> str:
        return self.name or "mac-" + self.mac.replace(":", "")


@dataclass(frozen=True, slots=True)
class HostBond:
    """`members` are MACs of ports; `mode` as the kernel names it (`802.3ad`, `active-backup`)."""

    name: str
    members: tuple[str, ...]
    mode: str = "802.3ad"
    addressing: Addressing = Addressing()

    @property
    def label(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class HostVlan:
    """`parent` is the name of a bond, or the MAC of a port."""

    name: str
    parent: str
    vlan: int
    addressing: Addressing = Addressing()

    @property
    def label(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class HostIpoib:
    """IP over one InfiniBand port; `connected` mode, else datagram.

    `guid` of the port, 16 digits: the interface is recognised by it and then called `name`; empty: `name` is what the
    kernel calls it (`ib0`).
    """

    name: str
    connected: bool = False
    addressing: Addressing = Addressing()
    guid: str = ""

    @property
    def label(self) -> str:
        return self.name


Link = HostPort | HostBond | HostVlan | HostIpoib
"""`label` is its name, or one made of its MAC where the kernel's name is kept."""


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """All of one host. Empty: the installer's own way, an address by DHCP on the port that booted."""

    ports: tuple[HostPort, ...] = ()
    bonds: tuple[HostBond, ...] = ()
    vlans: tuple[HostVlan, ...] = ()
    ipoib: tuple[HostIpoib, ...] = ()
    nameservers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.ports or self.bonds or self.vlans or self.ipoib)

    @property
    def links(self) -> tuple[Link, ...]:
        return (*self.ports, *self.bonds, *self.vlans, *self.ipoib)

    @property
    def uplink(self) -> Link | None:
        """The link to the rest of the world, name servers among it: with a gateway, else by DHCP, else the first that
        has an address. A boot waits for this one only.
        """
        for wanted in (lambda a: a.gateway, lambda a: a.dhcp, bool):
            for link in self.links:
                if wanted(link.addressing):
                    return link
        return None

    def answering(self, preferred: str) -> tuple[str, ...]:
        """Return the host's addresses, without prefixes: its fixed Ethernet ones, `preferred` first, then the uplink's.

        None where neither `preferred` is one of them nor its uplink has a fixed address.
        """
        uplink = self.uplink
        links: list[Link] = [*self.ports, *self.bonds, *self.vlans]
        links.sort(key=lambda link: link is not uplink)
        fixed = [address.partition("/")[0] for link in links for address in link.addressing.addresses]
        if preferred in fixed:
            return tuple(dict.fromkeys((preferred, *fixed)))
        return tuple(fixed) if uplink is not None and uplink.addressing.addresses else ()

    def bond_of(self, mac: str) -> HostBond | None:
        """Return the bond that the port of this MAC is a member of."""
        return next((bond for bond in self.bonds if mac in bond.members), None)

    def vlans_on(self, link: Link) -> tuple[HostVlan, ...]:
        keys = {link.label, link.mac} if isinstance(link, HostPort) else {link.label}
        return tuple(vlan for vlan in self.vlans if vlan.parent in keys)


@dataclass(frozen=True, slots=True)
class BondState:
    """`partner`: the MAC of the switch that uses LACP, all zeros where none does; empty in other modes.

    `active`: members of the aggregator in use; None where the mode has none.
    """

    mode: str
    partner: str = ""
    active: int | None = None


@dataclass(frozen=True, slots=True)
class HostNetworkInterface:
    """addresses   global ones, with prefix
    permanent   the MAC burnt in, where it differs from the present one
    carrier     whether the link is up at the wire
    master      the bond or bridge that it is a member of; empty: none
    parent      what a VLAN lies on
    member_up   whether its bond takes the link as up; None where it is in none
    ipoib_mode  `datagram` or `connected`; empty where it is none, or its mode is unknown
    """

    name: str
    mac: str
    mtu: int
    carrier: bool
    addresses: tuple[str, ...] = ()
    permanent: str = ""
    master: str = ""
    parent: str = ""
    vlan: int | None = None
    bond: BondState | None = None
    member_up: bool | None = None
    ipoib_mode: str = ""


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """`gateway` is empty where the route has none but an interface."""

    gateway: str
    interface: str


@dataclass(frozen=True, slots=True)
class ObservedNetwork:
    interfaces: tuple[HostNetworkInterface, ...]
    routes: tuple[DefaultRoute, ...]
    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    def named(self, name: str) -> HostNetworkInterface | None:
        return next((one for one in self.interfaces if one.name == name), None)

    def port(self, mac: str) -> HostNetworkInterface | None:
        """Return the port with this MAC: bonds and VLANs show the MAC of what they lie on."""
        burnt_in = [one for one in self.interfaces if one.permanent == mac]
        present = [one for one in self.interfaces if one.mac == mac and one.bond is None and one.vlan is None]
        return next(iter(burnt_in + [one for one in present if not one.permanent]), None)
