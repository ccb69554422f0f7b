"""What operators decide about a node: payloads of the stream `node`; parts have copies of some."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.node import RevalidationOrigin, Serial, Stage, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReleased(Payload):
    """A stopped node goes from stage `was` back to stage `to`."""

    kind: ClassVar = Kind.NODE_RELEASED
    to: Stage
    reason: str
    was: Stage = Stage.QUARANTINED

    def __str__(self) -> str:
        return f"released to {self.to.value}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairReported(Payload):
    """An operator has ticked a work order off. In the streams of the node and of both parts.

    part      that was repaired or replaced, as operators name it; empty where the order is about no part
    old, new  serials; empty where unknown, or where nothing was replaced
    node      its name
    """

    kind: ClassVar = Kind.NODE_REPAIR_REPORTED
    node: str
    done: str
    part: str = ""
    old: str = ""
    new: str = ""

    def __str__(self) -> str:
        old = f" for {self.old}" if self.old else ""
        new = f"; serial {self.new}{old}" if self.new else ""
        part = f", {self.part}" if self.part else ""
        return f"repair reported of {self.node}{part}: {self.done}{new}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldSet(Payload):
    """`until` is None where the hold lasts until it is lifted. `plan`: of the rolling change that holds the node."""

    kind: ClassVar = Kind.HOLD_SET
    reason: str
    until: datetime | None = None
    plan: str = ""

    def __str__(self) -> str:
        return f"HELD until {self.until.isoformat() if self.until else 'released'}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLifted(Payload):
    kind: ClassVar = Kind.HOLD_LIFTED
    reason: str

    def __str__(self) -> str:
        return f"hold lifted: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverGranted(Payload):
    """`subject` is empty where the waiver covers the check on any part."""

    kind: ClassVar = Kind.WAIVER_GRANTED
    check: str
    subject: str
    until: datetime
    reason: str

    def __str__(self) -> str:
        return f"{_of(self.check, self.subject)} waived until {self.until.isoformat()}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverRevoked(Payload):
    kind: ClassVar = Kind.WAIVER_REVOKED
    check: str
    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{_of(self.check, self.subject)} no longer waived: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMerged(Payload):
    """The machine with serial `new` is this node from now on.

    `old` is empty where the node had no serial; `moved_from` names the node that the machine was before.
    """

    kind: ClassVar = Kind.NODE_MERGED
    node: str
    old: str
    new: Serial
    reason: str
    moved_from: str = ""

    def __str__(self) -> str:
        before = f", was {self.old}" if self.old else ""
        moved = f", was {self.moved_from}" if self.moved_from else ""
        return f"MERGED: the machine with serial {self.new}{before}{moved}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRetired(Payload):
    """`into` names the node that the machine is now; empty where it is out of the site. `wiped`: its drives are."""

    kind: ClassVar = Kind.NODE_RETIRED
    reason: str
    into: str = ""
    wiped: bool = False

    def __str__(self) -> str:
        into = f" into {self.into}" if self.into else ""
        return f"RETIRED{into}{', drives erased' if self.wiped else ''}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRelocated(Payload):
    """The same machine has another name, place or address. `changes`: what changed, for operators.

    serial  that its BMC reported right before
    since   the first step that must prove the node again; None where no step did that it touches
    """

    kind: ClassVar = Kind.NODE_RELOCATED
    changes: str
    serial: str
    reason: str
    since: Step | None = None

    def __str__(self) -> str:
        return f"RELOCATED: {self.changes}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReinstallOrdered(Payload):
    """The OS is to be installed again on the machine with this serial and root disk. `was`: the stage until then."""

    kind: ClassVar = Kind.REINSTALL_ORDERED
    reason: str
    serial: str
    root_disk: str
    was: Stage

    def __str__(self) -> str:
        return f"TO BE REINSTALLED, was {self.was.value}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RevalidationOrdered(Payload):
    """The node goes back to stage `to`, before step `since`. `origin`: operator or rule. `parts`: the repaired ones."""

    kind: ClassVar = Kind.REVALIDATION_ORDERED
    since: Step
    to: Stage
    was: Stage
    origin: RevalidationOrigin
    reason: str
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"to be revalidated from {self.since.value} on: {self.reason}"


def _of(check: str, subject: str) -> str:
    return f"{check} of {subject}" if subject else check


PAYLOADS: tuple[type[Payload], ...] = (
    NodeReleased, RepairReported, HoldSet, HoldLifted, WaiverGranted, WaiverRevoked, NodeMerged, NodeRetired,
    NodeRelocated, ReinstallOrdered, RevalidationOrdered,
)  # fmt: skip
