"""What a fabric manager reports: alarms and events about ports, devices and itself."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.fabric.topology import PortId
from clusterctl.fleet.node import Guid
from clusterctl.fleet.peer_text import visible_line

_TEXT = 400


class Meaning(enum.StrEnum):
    """What an event reports of the fabric.

    LINK_ERRORS     the error counters of a port grow
    LINK_STATE      a link went down, or is unstable
    LINK_RATE       a link is slower or narrower than it can be
    CABLE           a cable is hot, was moved, or is there twice
    SYMPTOM         a port suffers from what is wrong elsewhere: congestion, a remote error
    DEVICE          a part of a switch
    NODE            a host or switch went or came
    SUBNET_MANAGER  the subnet manager changed its state or its host
    MANAGER         the fabric manager itself
    NOTHING         of no use for the links
    UNKNOWN         a code that the table does not have
    """

    LINK_ERRORS = "link_errors"
    LINK_STATE = "link_state"
    LINK_RATE = "link_rate"
    CABLE = "cable"
    SYMPTOM = "symptom"
    DEVICE = "device"
    NODE = "node"
    SUBNET_MANAGER = "subnet_manager"
    MANAGER = "manager"
    NOTHING = "nothing"
    UNKNOWN = "unknown"

    @property
    def suspects_link(self) -> bool:
        """Return whether the counters of the event's ports are to be looked at."""
        return self in (Meaning.LINK_ERRORS, Meaning.LINK_STATE, Meaning.LINK_RATE, Meaning.CABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricAlarm:
    """One event or alarm.

    id       the manager's own number; it grows with time and may begin again
    code     which kind of event it is
    ports    the ports that it names by GUID and number; both ends of a link
    device   the GUID of the device, where it names no port
    place    the object as the manager names it
    serial   the serial of the cable, where the text has it
    count    how many events an alarm stands for
    """

    id: int
    code: int
    at: datetime
    severity: str
    ports: tuple[PortId, ...] = ()
    device: Guid | None = None
    place: str = ""
    text: str = ""
    serial: str = ""
    count: int = 1

    def __post_init__(self) -> None:
        """Make the texts visible, bounded lines: the manager repeats what devices call themselves."""
        for name in ("severity", "place", "text", "serial"):
            object.__setattr__(self, name, visible_line(getattr(self, name), _TEXT))


@dataclass(frozen=True, slots=True)
class AlarmList:
    """What one reading of a fabric manager's events holds.

    unread  why an entry could not be read, by the digest of the entry
    """

    alarms: tuple[FabricAlarm, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedSystem:
    """A switch or host as the fabric manager has it; empty where it does not know.

    software      the version of its operating system, MLNX-OS or NVOS; only of switches that have one
    capabilities  the manager's actions that it takes, such as `sw_upgrade` and `reboot`
    """

    guid: Guid
    name: str = ""
    kind: str = ""
    model: str = ""
    firmware: str = ""
    serial: str = ""
    software: str = ""
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedPort:
    """A port as the fabric manager has it. `logical` and `physical`: `Active`, `Link Up` and so on."""

    port: PortId
    logical: str = ""
    physical: str = ""
    lid: int = 0
    peer: PortId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedLink:
    """A link as the fabric manager has it."""

    a: PortId
    b: PortId
    width: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnhealthyPort:
    """A port that the subnet manager keeps out of its routes. `conditions`: why, `MANUAL`, `FLAPPING` and so on."""

    port: PortId
    conditions: tuple[str, ...] = ()
