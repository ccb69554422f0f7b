"""What a device receives from its neighbours by LLDP (IEEE 802.1AB)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.node import Mac


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One sender of frames that arrive at `interface`.

    chassis      the sender's name of its device: its system name, else its chassis id
    ports        the sender's names of its port: the port id, unless that is a MAC address, and the port's description
    port_mac     the port id, where that is a MAC address
    chassis_mac  the chassis id, where that is one: of the device, not of this port
    """

    interface: str
    chassis: str
    ports: tuple[str, ...] = ()
    port_mac: Mac | None = None
    chassis_mac: Mac | None = None


@dataclass(frozen=True, slots=True)
class LldpReport:
    """All neighbours of one device, and the MAC addresses of its own interfaces where it reports them."""

    neighbours: tuple[Neighbour, ...]
    interfaces: Mapping[str, Mac] = field(default_factory=dict)
