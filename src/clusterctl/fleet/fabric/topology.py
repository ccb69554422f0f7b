"""An InfiniBand fabric as a subnet sweep sees it: devices by GUID, and the links that are up between their ports."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.fleet.node import Guid


class DeviceKind(enum.Enum):
    SWITCH = "switch"
    CA = "ca"
    ROUTER = "router"


LANE_GBPS: Mapping[str, float] = {
    "SDR": 2.5,
    "DDR": 5,
    "QDR": 10,
    "FDR10": 10,
    "FDR": 14,
    "EDR": 25,
    "HDR": 50,
    "NDR": 100,
    "XDR": 200,
}
"""Nominal Gb/s of one lane, as the trade names add up (4xNDR is called 400 Gb/s)."""

AGGREGATION_NODE = "Mellanox Technologies Aggregation Node"
"""Description of the SHARP engine inside a switch: an internal port, not a cable."""


@dataclass(frozen=True, slots=True, order=True)
class PortId:
    """One port of one device; `number` counts from 1."""

    guid: Guid
    number: int


@dataclass(frozen=True, slots=True)
class PortState:
    """In the words of the InfiniBand Architecture: `Active`, `Down` …; `LinkUp`, `Polling`, `Disabled` …"""

    logical: str
    physical: str

    @property
    def disabled(self) -> bool:
        return self.physical == "Disabled"


@dataclass(frozen=True, slots=True)
class Device:
    """`description` is the node description without surrounding blanks; `ports` the number of ports that it reports.
    `lids` are the addresses of its ports; a switch's is that of its port 0. A field is empty where the reading does
    not have it. A reading without the node GUID of an adapter (iblinkinfo) has its port's instead.
    """

    guid: Guid
    kind: DeviceKind
    description: str
    ports: int
    device_id: int = 0
    system_guid: Guid | None = None
    port_guids: tuple[Guid, ...] = ()
    lids: tuple[int, ...] = ()

    @property
    def is_aggregation(self) -> bool:
        return self.description == AGGREGATION_NODE


@dataclass(frozen=True, slots=True)
class Link:
    """A cable that is up, seen from both ends; `a` < `b`. `width` in lanes, `speed` one of `LANE_GBPS`."""

    a: PortId
    b: PortId
    width: int
    speed: str

    @property
    def gbps(self) -> float:
        """Nominal Gb/s in each direction."""
        return self.width * LANE_GBPS[self.speed]

    @property
    def rate(self) -> str:
        """As `ibnetdiscover` prints it: `4xNDR`."""
        return f"{self.width}x{self.speed}"


@dataclass(frozen=True, slots=True)
class Fabric:
    """All that one sweep saw, internal ports included.

    `warnings` are what the tool printed in addition: it may not have reached every device.
    """

    devices: Mapping[Guid, Device]
    links: tuple[Link, ...]
    warnings: tuple[str, ...] = ()

    def cables(self) -> tuple[Link, ...]:
        """Return the links between devices that an operator can unplug: without those to aggregation nodes."""
        internal = {guid for guid, device in self.devices.items() if device.is_aggregation}
        return tuple(link for link in self.links if link.a.guid not in internal and link.b.guid not in internal)


NO_ROUTE = 255
"""Out port of a LID that a switch drops (InfiniBand Architecture 1.3 volume 1, LinearForwardingTable)."""


@dataclass(frozen=True, slots=True)
class ForwardingTables:
    """`tables`: node GUID of a switch → one byte per LID, its out port (0 is the switch itself, 255 none). All tables
    are equally long. `lids`: LID → GUID of the port that it addresses, for LIDs with an owner in the dump; a switch's
    port 0 has its node GUID.
    """

    tables: Mapping[Guid, bytes]
    lids: Mapping[int, Guid]


@dataclass(frozen=True, slots=True)
class RoutingOutcome:
    """What a subnet manager's log reports of its last routing.

    `engine`: the engine of the tables that are configured now (`ftree`, `minhop`, `ar_ftree`). `failures`: the log's
    messages against the engines that were tried before it, oldest first, without time stamps.
    """

    engine: str
    failures: tuple[str, ...] = ()

    @property
    def adaptive(self) -> bool:
        """True where switches choose among ports by themselves: UFM's engines of that kind begin with `ar_`."""
        return self.engine.startswith("ar_")
