"""The fold: the state of a node from its events. The stored `node_state` always equals this fold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import singledispatch

from clusterctl.fleet.acts import Act, Intent, voided, with_intent, with_result
from clusterctl.fleet.decisions.waiver import Waiver
from clusterctl.fleet.event import Event, Payload
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Location, NodeId, Serial, Stage, Step
from clusterctl.fleet.payloads.decisions import (
    HoldLifted,
    HoldSet,
    NodeMerged,
    NodeReleased,
    NodeRelocated,
    NodeRetired,
    ReinstallOrdered,
    RevalidationOrdered,
    WaiverGranted,
    WaiverRevoked,
)
from clusterctl.fleet.payloads.node import (
    ActIntended,
    ActObserved,
    HostKeyPinned,
    InstallProgress,
    NodeAddressed,
    NodeAdopted,
    NodeDescribed,
    NodeHeld,
    NodeIdentified,
    NodeQuarantined,
    ReportRecorded,
    RootDiskProven,
    StageAdvanced,
    StepStarted,
)
from clusterctl.fleet.stages import Move, require
from clusterctl.fleet.state import NodeState, OperatorHold, Revalidation


def fold(events: Iterable[Event], node: NodeId) -> NodeState:
    """Return the state of `node` after `events` (its own stream, in `seq` order)."""
    state = NodeState(node)
    for event in events:
        state = apply(state, event)
    return state


def apply(state: NodeState, event: Event) -> NodeState:
    """Return the state after one more event. Raise `ConflictError` where the stage table does not have its move."""
    changed = _applied(event.payload, state, event)
    return replace(changed, events=state.events + 1, last_seq=event.seq)


@singledispatch
def _applied(_payload: Payload, state: NodeState, _event: Event) -> NodeState:
    """Return the state after one kind of event. Kinds without a function of their own only count."""
    return state


@_applied.register
def _described(payload: NodeDescribed, state: NodeState, event: Event) -> NodeState:
    return replace(
        state,
        name=payload.name,
        bmc=payload.bmc,
        location=Location(payload.rack, payload.unit),
        expected_serial=payload.serial or None,
        boot_mac=payload.boot_mac or None,
        since=state.since or event.at,
    )


@_applied.register
def _identified(payload: NodeIdentified, state: NodeState, _event: Event) -> NodeState:
    """Keep the disk that an installed host has proven: a BMC that does not name it cannot take it back."""
    inventory = payload.inventory
    proven = state.root_disk if payload.root_rule is not None and state.root_rule is not None else None
    return replace(
        state,
        serial=inventory.serial,
        inventory=inventory,
        sku=payload.sku,
        root_disk=payload.root_disk or proven,
        root_rule=payload.root_rule,
    )


@_applied.register
def _addressed(payload: NodeAddressed, state: NodeState, _event: Event) -> NodeState:
    return replace(state, address=payload.address)


@_applied.register
def _root_disk_proven(payload: RootDiskProven, state: NodeState, _event: Event) -> NodeState:
    return replace(state, root_disk=payload.disk)


@_applied.register
def _host_key(payload: HostKeyPinned, state: NodeState, _event: Event) -> NodeState:
    return replace(state, host_key=payload.public)


@_applied.register
def _adopted(payload: NodeAdopted, state: NodeState, _event: Event) -> NodeState:
    """Take the serial that the operator has confirmed where no BMC will show it."""
    serial = state.serial if state.bmc else state.serial or payload.serial
    return replace(state, address=payload.address, host_key=payload.public, adopted=True, serial=serial)


@_applied.register
def _started(_payload: StepStarted, state: NodeState, _event: Event) -> NodeState:
    return replace(state, attempts=state.attempts + 1)


@_applied.register
def _intended(payload: ActIntended, state: NodeState, event: Event) -> NodeState:
    intent = Intent(payload.act, payload.target, event.seq, payload.details)
    installs = payload.act is Act.INSTALL_START
    return replace(
        state,
        reinstall="" if installs else state.reinstall,
        adopted=state.adopted and not installs,
        intents=with_intent(state.intents, intent),
    )


@_applied.register
def _observed(payload: ActObserved, state: NodeState, event: Event) -> NodeState:
    intents = with_result(state.intents, payload.act, payload.result, event.seq, payload.component)
    return replace(state, intents=intents)


@_applied.register
def _progress(payload: InstallProgress, state: NodeState, _event: Event) -> NodeState:
    earlier = state.progress if state.progress_at == payload.at else ()
    return replace(state, progress_at=payload.at, progress=(*earlier, payload.message))


@_applied.register
def _reported(payload: ReportRecorded, state: NodeState, event: Event) -> NodeState:
    report = payload.report
    return replace(
        state,
        reports={**state.reports, report.step: report},
        reported_at={**state.reported_at, report.step: event.at},
    )


@_applied.register
def _advanced(payload: StageAdvanced, state: NodeState, event: Event) -> NodeState:
    moved = replace(_moved(state, event, Move.ADVANCE, payload.to), verdict=payload.verdict)
    return replace(moved, revalidation=None, admitted_at=event.at) if moved.stage is Stage.GOLD else moved


@_applied.register
def _held(payload: NodeHeld, state: NodeState, event: Event) -> NodeState:
    require(state.stage, Move.STOP, state.stage, state.name)
    return replace(
        state,
        verdict=payload.verdict,
        since=event.at,
        cause=payload.cause,
        remedy=payload.remedy,
        stopped_at=payload.step,
        stopped_by="",
    )


@_applied.register
def _quarantined(payload: NodeQuarantined, state: NodeState, event: Event) -> NodeState:
    require(state.stage, Move.QUARANTINE, Stage.QUARANTINED, state.name)
    return replace(
        state,
        stage=Stage.QUARANTINED,
        verdict=payload.verdict,
        since=event.at,
        cause=payload.cause,
        remedy=payload.remedy,
        stopped_at=payload.step,
        stopped_by=event.actor if payload.by_operator else "",
    )


@_applied.register
def _released(payload: NodeReleased, state: NodeState, event: Event) -> NodeState:
    """Close an open reboot: what the node was rebooted for is repaired."""
    fresh = replace(state, intents=voided(state.intents, Act.CONFIGURE_REBOOT))
    return _moved(fresh, event, Move.RELEASE, payload.to)


@_applied.register
def _hold_set(payload: HoldSet, state: NodeState, event: Event) -> NodeState:
    return replace(state, hold=OperatorHold(payload.reason, event.actor, event.at, payload.until, payload.plan))


@_applied.register
def _hold_lifted(_payload: HoldLifted, state: NodeState, _event: Event) -> NodeState:
    return replace(state, hold=None)


@_applied.register
def _waived(payload: WaiverGranted, state: NodeState, event: Event) -> NodeState:
    """Replace an older waiver for the same check and subject."""
    waiver = Waiver(payload.check, payload.subject, payload.reason, event.actor, event.at, payload.until)
    return replace(state, waivers=(*_other_waivers(state, payload), waiver))


@_applied.register
def _revoked(payload: WaiverRevoked, state: NodeState, _event: Event) -> NodeState:
    return replace(state, waivers=_other_waivers(state, payload))


def _other_waivers(state: NodeState, payload: WaiverGranted | WaiverRevoked) -> tuple[Waiver, ...]:
    meant = (payload.check, payload.subject)
    return tuple(waiver for waiver in state.waivers if (waiver.check, waiver.subject) != meant)


@_applied.register
def _merged(payload: NodeMerged, state: NodeState, event: Event) -> NodeState:
    """Make the node another machine: what was known of the old one, done to it and waived on it no longer counts."""
    return replace(
        _moved(state, event, Move.MERGE, Stage.SEEN),
        serial=payload.new,
        former_serials=_with(state.former_serials, state.serial),
        inventory=None,
        sku="",
        root_disk=None,
        root_rule=None,
        address="",
        intents=(),
        reports={},
        reported_at={},
        waivers=(),
        reinstall="",
        revalidation=None,
        admitted_at=None,
        adopted=False,
    )


@_applied.register
def _reinstall(payload: ReinstallOrdered, state: NodeState, event: Event) -> NodeState:
    moved = _moved(state, event, Move.REINSTALL, Stage.DISCOVERED)
    return replace(moved, reinstall=payload.reason, revalidation=None, admitted_at=None)


@_applied.register
def _relocated(payload: NodeRelocated, state: NodeState, _event: Event) -> NodeState:
    """Lead the release of a quarantined node back at least to the step that must prove it again."""
    if payload.since is None or state.stage is not Stage.QUARANTINED or state.stopped_at is None:
        return state
    return replace(state, stopped_at=min(state.stopped_at, payload.since, key=list(Step).index))


@_applied.register
def _revalidate(payload: RevalidationOrdered, state: NodeState, event: Event) -> NodeState:
    """Go back to before `since`: the reports of that step and of those after it no longer count."""
    steps = list(Step)
    gone = {step.value for step in steps[steps.index(payload.since) :]}
    return replace(
        _moved(state, event, Move.REVALIDATE, payload.to),
        revalidation=Revalidation(payload.origin, payload.reason),
        reports={step: report for step, report in state.reports.items() if step not in gone},
        reported_at={step: at for step, at in state.reported_at.items() if step not in gone},
    )


@_applied.register
def _retired(payload: NodeRetired, state: NodeState, event: Event) -> NodeState:
    """Retire for good. Where the machine goes on as another node, its serial belongs to that one now."""
    retired = replace(
        _moved(state, event, Move.RETIRE, Stage.RETIRED),
        verdict=Verdict.NOT_APPLICABLE,
        cause=_retirement(payload, event.actor),
        intents=(),
        hold=None,
        waivers=(),
    )
    if not payload.into:
        return retired
    return replace(retired, serial=None, former_serials=_with(state.former_serials, state.serial))


def _retirement(payload: NodeRetired, actor: str) -> str:
    if payload.into:
        return f"{actor} declared it one machine with {payload.into}: {payload.reason}"
    wiped = ", its drives erased" if payload.wiped else ""
    return f"retired by {actor}{wiped}: {payload.reason}"


def _moved(state: NodeState, event: Event, move: Move, to: Stage) -> NodeState:
    """Return the state at stage `to`, where nothing is measured yet and nothing keeps the node back."""
    require(state.stage, move, to, state.name)
    return replace(
        state,
        stage=to,
        verdict=Verdict.INCONCLUSIVE,
        since=event.at,
        cause="",
        remedy="",
        stopped_at=None,
        stopped_by="",
        attempts=0,
    )


def _with(serials: tuple[Serial, ...], serial: Serial | None) -> tuple[Serial, ...]:
    return serials if serial is None else (*serials, serial)
