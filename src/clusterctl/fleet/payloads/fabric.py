"""What a fabric manager reported, and repairs of links that operators report: payloads of the stream `fabric`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricAlarmsRead(Payload):
    """Events of a fabric manager were read up to here. Subject: the source, `ufm` or `ufm_log`.

    newest    the time of the newest event that was read; `last_id`: its number
    counts    how many new events there were, by meaning
    unknown   their codes that no table has
    managers  what they report of the subnet manager
    unread    digests of entries that could not be read: each is reported once
    """

    kind: ClassVar = Kind.FABRIC_ALARMS_READ
    newest: datetime
    last_id: int
    counts: Mapping[str, int] = field(default_factory=dict)
    unknown: tuple[int, ...] = ()
    managers: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def __str__(self) -> str:
        counted = ", ".join(f"{count} {meaning}" for meaning, count in sorted(self.counts.items()))
        return f"events of the fabric manager: {counted or 'none'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricLinkSuspected(Payload):
    """A fabric manager reported something about a port that concerns its link. Subject: the port, `GUID/port`.

    serial  of the cable, where the event has it
    """

    kind: ClassVar = Kind.FABRIC_LINK_SUSPECTED
    code: int
    name: str
    at: datetime
    text: str = ""
    serial: str = ""

    def __str__(self) -> str:
        return f"the fabric manager reports {self.name} ({self.code})"


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricRepairReported(Payload):
    """The link of a disabled port is repaired: it is to be proven. Subject: the port, `GUID/port`."""

    kind: ClassVar = Kind.FABRIC_REPAIR_REPORTED
    reason: str

    def __str__(self) -> str:
        return f"repaired: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricLinkBurned(Payload):
    """Hosts loaded a link that was enabled after its repair, or could not. Subject: the port, `GUID/port`.

    verdict  `pass`, `fail`, or `inconclusive` where a direction is not proven
    seconds  that the load was to take
    shares   % of its rate that each direction carried; none where no stage came to its end
    reason   what is wrong, or why it is not proven
    """

    kind: ClassVar = Kind.FABRIC_LINK_BURNED
    verdict: str
    seconds: float
    shares: tuple[float, ...] = ()
    reason: str = ""

    @property
    def proven(self) -> bool:
        return self.verdict == Verdict.PASS.value

    @property
    def failed(self) -> bool:
        return self.verdict == Verdict.FAIL.value

    def __str__(self) -> str:
        shares = " and ".join(f"{share:g} %" for share in self.shares)
        carried = f"{shares} of its rate" if shares else ""
        if self.proven:
            return f"burned for {self.seconds:g} s at {carried}"
        return f"not proven by a burn: {self.reason}{f' ({carried})' if carried else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricMasterSeen(Payload):
    """The master subnet manager as it was read, written where it differs from the last one. Subject: `master`.

    guid  of the port that it runs at; `name`: of its device, empty where the fabric does not have it
    """

    kind: ClassVar = Kind.FABRIC_MASTER_SEEN
    guid: Guid
    lid: int
    priority: int
    name: str = ""

    def __str__(self) -> str:
        return f"the master subnet manager is {self.name or self.guid} (LID {self.lid}, priority {self.priority})"


PAYLOADS: tuple[type[Payload], ...] = (
    FabricAlarmsRead,
    FabricLinkSuspected,
    FabricRepairReported,
    FabricLinkBurned,
    FabricMasterSeen,
)
