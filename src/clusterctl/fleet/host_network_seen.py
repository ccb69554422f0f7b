"""A host's network as the host itself tells it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BondSeen:
    """`partner`: the MAC of the switch that speaks LACP, all zeros where none does; empty in other modes.

    `active`: members of the aggregator in use; None where the mode has none.
    """

    mode: str
    partner: str = ""
    active: int | None = None


@dataclass(frozen=True, slots=True)
class Interface:
    """addresses   global ones, with prefix
    permanent   the MAC burnt in, where it differs from the present one
    carrier     whether the link is up at the wire
    master      the bond or bridge that it is a member of; empty: none
    parent      what a VLAN lies on
    member_up   whether its bond thinks that the link is up; None where it is in none
    ipoib_mode  `datagram` or `connected`; empty where it is none, or its mode is not told
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
    bond: BondSeen | None = None
    member_up: bool | None = None
    ipoib_mode: str = ""


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """`gateway` is empty where the route has none but an interface."""

    gateway: str
    interface: str


@dataclass(frozen=True, slots=True)
class SeenNetwork:
    interfaces: tuple[Interface, ...]
    routes: tuple[DefaultRoute, ...]
    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()

    def named(self, name: str) -> Interface | None:
        return next((one for one in self.interfaces if one.name == name), None)

    def port(self, mac: str) -> Interface | None:
        """The one that has this MAC by itself: bonds and VLANs show the MAC of what they lie on."""
        burnt_in = [one for one in self.interfaces if one.permanent == mac]
        present = [one for one in self.interfaces if one.mac == mac and one.bond is None and one.vlan is None]
        return next(iter(burnt_in + [one for one in present if not one.permanent]), None)
