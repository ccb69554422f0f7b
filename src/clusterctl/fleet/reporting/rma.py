"""Returns of parts to their vendors: where each stands, since when, and whether it is late."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import singledispatch

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Event, Kind, Payload
from clusterctl.fleet.payloads.rma import RmaClosed, RmaOpened, RmaReceived, RmaShipped

KINDS = (Kind.RMA_OPENED, Kind.RMA_SHIPPED, Kind.RMA_RECEIVED, Kind.RMA_CLOSED)


class RmaStage(enum.StrEnum):
    """Where a return stands."""

    OPENED = "opened"
    SHIPPED = "shipped"
    RECEIVED = "received"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rma:
    """The last return of a part.

    serial  of the part; `new` of its replacement, empty until it was received
    since   when it came to its stage
    due     of the replacement; None where the vendor names no time
    """

    serial: str
    case: str
    reason: str
    stage: RmaStage
    opened_at: datetime
    since: datetime
    part: str = ""
    node: str = ""
    due: datetime | None = None
    tracking: str = ""
    new: str = ""

    @property
    def open(self) -> bool:
        return self.stage is not RmaStage.CLOSED

    def late(self, now: datetime) -> bool:
        """Return whether the replacement is due and has not been received."""
        waiting = self.stage in (RmaStage.OPENED, RmaStage.SHIPPED)
        return waiting and self.due is not None and now > self.due


FROM: Mapping[RmaStage, frozenset[RmaStage]] = {
    RmaStage.SHIPPED: frozenset({RmaStage.OPENED, RmaStage.RECEIVED}),
    RmaStage.RECEIVED: frozenset({RmaStage.OPENED, RmaStage.SHIPPED}),
    RmaStage.CLOSED: frozenset({RmaStage.OPENED, RmaStage.SHIPPED, RmaStage.RECEIVED}),
}
"""Stage → the stages before it. A vendor may send the replacement before it has the part."""


def require(rma: Rma | None, to: RmaStage, serial: str) -> None:
    """Raise `UsageError` where a return cannot go on to this stage, or there is none to go on."""
    if to is RmaStage.OPENED:
        if rma is not None and rma.open:
            remedy = f"clusterctl rma close {serial} first"
            raise UsageError(f"its RMA, case {rma.case}, is {rma.stage.value}", where=serial, remedy=remedy)
        return
    if rma is None or not rma.open:
        remedy = f"clusterctl rma open {serial} --case NUMBER"
        raise UsageError("it has no open RMA", where=serial, remedy=remedy)
    if rma.stage not in FROM[to]:
        raise UsageError(f"its RMA is {rma.stage.value} already", where=serial, remedy="clusterctl rma list")


def rmas(events: Iterable[Event]) -> tuple[Rma, ...]:
    """Return the last return of each part, the oldest first. `events`: of the kinds in `KINDS`."""
    found: dict[str, Rma] = {}
    for event in sorted(events, key=lambda one: one.seq):
        now = _applied(event.payload, found.get(event.subject), event)
        if now is not None:
            found[event.subject] = now
    return tuple(sorted(found.values(), key=lambda one: (one.opened_at, one.serial)))


@singledispatch
def _applied(_payload: Payload, rma: Rma | None, _event: Event) -> Rma | None:
    return rma


@_applied.register
def _opened(payload: RmaOpened, _rma: Rma | None, event: Event) -> Rma | None:
    return Rma(
        serial=event.subject,
        case=payload.case,
        reason=payload.reason,
        stage=RmaStage.OPENED,
        opened_at=event.at,
        since=event.at,
        part=payload.part,
        node=payload.node,
        due=payload.due,
    )


@_applied.register
def _shipped(payload: RmaShipped, rma: Rma | None, event: Event) -> Rma | None:
    if rma is None:
        return None
    stage = RmaStage.RECEIVED if rma.new else RmaStage.SHIPPED
    return replace(rma, stage=stage, since=event.at, tracking=payload.tracking, due=payload.due or rma.due)


@_applied.register
def _received(payload: RmaReceived, rma: Rma | None, event: Event) -> Rma | None:
    if rma is None:
        return None
    if rma.stage is RmaStage.CLOSED:  # a correction
        return replace(rma, new=payload.new)
    return replace(rma, stage=RmaStage.RECEIVED, since=event.at, new=payload.new)


@_applied.register
def _closed(_payload: RmaClosed, rma: Rma | None, event: Event) -> Rma | None:
    return None if rma is None else replace(rma, stage=RmaStage.CLOSED, since=event.at)
