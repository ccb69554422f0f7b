"""Parts that come and go, and what a fabric consists of: payloads of the streams `part` and `fabric`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.finding import Digest

_HEX_DIGITS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartPlace(Payload):
    """Where a part is or was. `other`: the serial of the part that was there before, or is there now."""

    component: str
    slot: str
    model: str
    node: str
    other: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSeen(_PartPlace):
    kind: ClassVar = Kind.PART_SEEN

    def __str__(self) -> str:
        instead = f", instead of {self.other}" if self.other else ""
        return f"seen in {self.node}, {self.component} {self.slot}{instead}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartGone(_PartPlace):
    kind: ClassVar = Kind.PART_GONE

    def __str__(self) -> str:
        now = f", {self.other} is there" if self.other else ""
        return f"gone from {self.node}, {self.component} {self.slot}{now}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReplaced(Payload):
    """In the node's stream: serial `new` (empty: none) is where serial `old` was."""

    kind: ClassVar = Kind.PART_REPLACED
    component: str
    slot: str
    old: str
    new: str = ""

    def __str__(self) -> str:
        return f"{self.component} {self.slot}: {self.new or 'nothing'} for {self.old}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricSeen(Payload):
    """Something of the fabric as one reading has it. `seen` False: it is gone, and all other fields are empty."""

    seen: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricDeviceSeen(FabricSeen):
    kind: ClassVar = Kind.FABRIC_DEVICE_SEEN
    device: str = ""
    description: str = ""
    firmware: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricLinkSeen(FabricSeen):
    kind: ClassVar = Kind.FABRIC_LINK_SEEN
    width: int = 0
    speed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricTransceiverSeen(FabricSeen):
    kind: ClassVar = Kind.FABRIC_TRANSCEIVER_SEEN
    vendor: str = ""
    part: str = ""
    firmware: str = ""
    ports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FabricFault:
    """A fault that belongs to no single node, as `cable verify` explains it.

    subjects  the devices or ports that it is about
    rack      where the work is
    links     how many links it explains
    nodes     the hosts that it keeps back; none where only switches are at its ends
    """

    kind: str
    subjects: tuple[str, ...]
    cause: str
    action: str
    rack: str
    links: int
    nodes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """A short name that is the same for the same thing in every reading."""
        return f"{self.kind}/{hashlib.sha256(self.fault.encode()).hexdigest()[:_HEX_DIGITS]}"

    @property
    def fault(self) -> str:
        """The identity that findings of nodes carry as `Finding.fault` for the same fault."""
        return "\n".join((self.kind, *self.subjects))


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricFaultSeen(FabricSeen):
    kind: ClassVar = Kind.FABRIC_FAULT_SEEN
    fault: FabricFault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricCountersRead(Payload):
    """The counters of all ports were read. Its evidence: the fabric and its counters, which may be one text.

    ports  of which counters were read
    """

    kind: ClassVar = Kind.FABRIC_COUNTERS_READ
    at: datetime
    fabric: Digest
    counters: Digest
    ports: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLinks:
    """A group of bad links or modules, or a single bad link.

    kind     what is wrong, as `HealthKind` has it
    shared   what the members of a group share (`rack`, `switch` …) and its `value`; empty for a single link
    verdict  `fail` where the links must be repaired
    ends     names of ports or devices, `node007 mlx5_0`; `count`: how many links it is about
    """

    kind: str
    verdict: str
    cause: str
    action: str
    shared: str = ""
    value: str = ""
    rack: str = ""
    count: int = 1
    ends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricLinksJudged(Payload):
    """The health of all links over the readings of `seconds`.

    causes  groups of bad links, then single ones, the worst first; `more` are in the evidence only
    found   the same groups and links as data; older programs did not write it
    reason  why nothing is known (`inconclusive`, no links), or why no link must be repaired yet
    """

    kind: ClassVar = Kind.FABRIC_LINKS_JUDGED
    verdict: str
    links: int = 0
    proven: int = 0
    bad: int = 0
    seconds: float = 0.0
    causes: tuple[str, ...] = ()
    found: tuple[BadLinks, ...] = ()
    more: int = 0
    reason: str = ""

    def __str__(self) -> str:
        if not self.links:
            return f"link health {self.verdict}: {self.reason}"
        hours = f"{self.seconds / 3600:.1f} h"
        return f"link health {self.verdict}: {self.proven} of {self.links} links proven over {hours}, {self.bad} bad"


PAYLOADS: tuple[type[Payload], ...] = (
    PartSeen, PartGone, PartReplaced, FabricDeviceSeen, FabricLinkSeen, FabricTransceiverSeen, FabricFaultSeen,
    FabricCountersRead, FabricLinksJudged,
)  # fmt: skip
