"""Returns of parts to their vendors (RMA): opened with the vendor's case, shipped, received, closed."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.durations import parse_due, utc_text
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.hardware.parts import part_named
from clusterctl.fleet.payloads.decisions import RepairReported
from clusterctl.fleet.payloads.hardware import PartGone, PartSeen
from clusterctl.fleet.payloads.node import NodeQuarantined
from clusterctl.fleet.payloads.rma import RmaClosed, RmaDelivered, RmaOpened, RmaReceived, RmaShipped
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.reporting.rma import KINDS, Rma, RmaStage, require, rmas
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result

NAME = "rma"
MOST = 120
"""Characters of a case, a serial or a tracking number."""
LONGEST = timedelta(days=365)


class RmaAction(enum.Enum):
    """What is recorded."""

    OPEN = "open"
    SHIP = "ship"
    RECEIVE = "receive"
    CLOSE = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class RmaRequest:
    """`part`: a serial, or with `node` a slot or name (`gpu3`); the other fields serve the actions in their lines.

    case           open: the vendor's number
    due            open, ship: when the replacement is due: `2026-12-01`, `14d`
    tracking       ship: of the carrier
    serial         receive: of the replacement; once more: corrected
    reason         open, close
    """

    action: RmaAction
    part: str
    node: str = ""
    case: str = ""
    due: str = ""
    tracking: str = ""
    serial: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    serial: str
    events: tuple[NewEvent, ...]
    effect: str


def known_rmas(context: SiteContext) -> tuple[Rma, ...]:
    """Return the last return of each part, the oldest first."""
    return rmas(event for kind in KINDS for event in context.journal.latest(Stream.PART, kind))


def preview(context: SiteContext, request: RmaRequest) -> Preview:
    """Return what is recorded. Raise `UsageError` where the part or the order of the actions is wrong."""
    return _preview(_plan(context, request), request)


def run(context: SiteContext, request: RmaRequest, control: Control) -> Result:
    """Record it in the history of the part, and of its replacement."""
    plan = _plan(context, request)
    control.require(_preview(plan, request))
    context.journal.append(plan.events)
    return Result(operation=f"{NAME} {request.action.value}", outcomes=(Outcome(node=plan.serial, text=plan.effect),))


def _preview(plan: _Plan, request: RmaRequest) -> Preview:
    effect = Effect(node=plan.serial, text=plan.effect)
    return Preview(operation=f"{NAME} {request.action.value}", question="Record it?", effects=(effect,)).of(request)


def _plan(context: SiteContext, request: RmaRequest) -> _Plan:
    serial, part, node = _identified(context, request)
    known = next((one for one in known_rmas(context) if one.serial == serial), None)
    if request.action is RmaAction.OPEN:
        require(known, RmaStage.OPENED, serial)
        return _opened(request, serial, part, node)
    return _next(request, serial, known)


def _opened(request: RmaRequest, serial: str, part: str, node: str) -> _Plan:
    case, due = _word(request.case, "--case"), _due(request)
    payload = RmaOpened(case=case, reason=checked_reason(request.reason), part=part, node=node, due=due)
    named = f"{part} of {node}" if part and node else part or node or "part"
    effect = f"{named}: RMA opened, case {case}{f', replacement due {utc_text(due)}' if due else ''}"
    return _Plan(serial, (_of_part(serial, payload),), effect)


def _next(request: RmaRequest, serial: str, known: Rma | None) -> _Plan:
    if request.action is RmaAction.SHIP:
        require(known, RmaStage.SHIPPED, serial)
        tracking = visible_line(request.tracking, MOST)
        shipped = RmaShipped(tracking=tracking, due=_due(request))
        return _Plan(serial, (_of_part(serial, shipped),), f"sent to the vendor{f', {tracking}' if tracking else ''}")
    if request.action is RmaAction.RECEIVE:
        return _received(_word(request.serial, "--serial"), serial, known)
    require(known, RmaStage.CLOSED, serial)
    reason = checked_reason(request.reason)
    return _Plan(serial, (_of_part(serial, RmaClosed(reason=reason)),), f"RMA closed: {reason}")


def _received(new: str, serial: str, known: Rma | None) -> _Plan:
    """Return the arrival of a replacement; where another serial was recorded, by mistake, its correction."""
    before = known.new if known is not None else ""
    if not before or before == new:
        require(known, RmaStage.RECEIVED, serial)
    case = known.case if known is not None else ""
    events = [_of_part(serial, RmaReceived(new=new))]
    if before and before != serial:
        events.append(_of_part(before, RmaDelivered(old=serial, case=case, withdrawn=True)))
    if new != serial:
        events.append(_of_part(new, RmaDelivered(old=serial, case=case)))
    return _Plan(serial, tuple(events), f"replacement received: {new}{f', not {before}' if before else ''}")


def _of_part(serial: str, payload: Payload) -> NewEvent:
    return NewEvent(Stream.PART, serial, payload)


def _identified(context: SiteContext, request: RmaRequest) -> tuple[str, str, str]:
    """Return serial, name and node of the part. Raise `UsageError` for a part that the journal does not know."""
    if request.node:
        state = context.node(request.node)
        part = part_named(state, request.part)
        if not part.serial:
            remedy = f"give its serial, or a name that clusterctl nodes {state.name} --part finds"
            raise UsageError(f"no reading names the serial of {part.subject}", where=request.node, remedy=remedy)
        return part.serial, part.subject, state.name
    serial = _word(request.part, "PART")
    events = list(context.journal.history(Stream.PART, serial))
    if not events:
        remedy = "give the serial as clusterctl nodes NODE --json has it, or name its node: --node NODE"
        raise UsageError(f"no part with the serial {serial!r} was ever seen", where="PART", remedy=remedy)
    return serial, *_last_place([event.payload for event in events])


def _last_place(payloads: list[Payload]) -> tuple[str, str]:
    """Return name and node of the part by its history."""
    part = node = ""
    for payload in payloads:
        if isinstance(payload, PartSeen | PartGone):
            part, node = f"{payload.component} {payload.slot}", payload.node
        elif isinstance(payload, RepairReported):
            part, node = payload.part or part, payload.node
        elif isinstance(payload, NodeQuarantined):
            part, node = part or payload.subject, payload.node or node
    return part, node


def _word(text: str, option: str) -> str:
    found = visible_line(text, MOST)
    if not found or len(text) > MOST:
        raise UsageError(f"needs 1 to {MOST} characters", where=option, remedy="copy it from the label or the vendor")
    return found


def _due(request: RmaRequest) -> datetime | None:
    if not request.due:
        return None
    try:
        return parse_due(request.due, CLOCK.now(), longest=LONGEST)
    except UsageError as error:
        raise UsageError(error.message, where="--due", remedy=error.remedy) from None
