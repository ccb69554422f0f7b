"""What people's decisions do to a node's state: the part of the fold that is theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.hold import PersonsHold
from clusterctl.fleet.node import Serial, Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waiver import Waiver


def _hold_set(state: NodeState, event: Event) -> NodeState:
    until = event.data.get("until")
    ends = datetime.fromisoformat(until) if until else None
    return replace(state, hold=PersonsHold(event.data["reason"], event.actor, event.at, ends))


def _hold_lifted(state: NodeState, _event: Event) -> NodeState:
    return replace(state, hold=None)


def _waived(state: NodeState, event: Event) -> NodeState:
    """A waiver of the same check and subject replaces the one before."""
    data = event.data
    until = datetime.fromisoformat(data["until"])
    waiver = Waiver(data["check"], data["subject"], data["reason"], event.actor, event.at, until)
    return replace(state, waivers=(*_others(state, event), waiver))


def _revoked(state: NodeState, event: Event) -> NodeState:
    return replace(state, waivers=_others(state, event))


def _others(state: NodeState, event: Event) -> tuple[Waiver, ...]:
    meant = (event.data["check"], event.data["subject"])
    return tuple(waiver for waiver in state.waivers if (waiver.check, waiver.subject) != meant)


def _merged(state: NodeState, event: Event) -> NodeState:
    """Another machine from now on: what was known of, done to and answered for on the old one no longer counts."""
    return replace(
        state,
        stage=Stage.SEEN,
        since=event.at,
        verdict=Verdict.INCONCLUSIVE,
        cause="",
        remedy="",
        stopped_at=None,
        stopped_by="",
        serial=Serial(event.data["new"]),
        former_serials=_with(state.former_serials, state.serial),
        inventory=None,
        sku="",
        root_disk=None,
        address="",
        attempts=0,
        acts={},
        open_acts=(),
        reports={},
        reported_at={},
        waivers=(),
        reinstall="",
        revalidation="",
        admitted_at=None,
    )


def _reinstall(state: NodeState, event: Event) -> NodeState:
    """Back to before its install; what was found of the OS that goes keeps it back no longer."""
    return replace(
        state,
        stage=Stage.DISCOVERED,
        since=event.at,
        verdict=Verdict.INCONCLUSIVE,
        cause="",
        remedy="",
        stopped_at=None,
        stopped_by="",
        attempts=0,
        reinstall=event.data["reason"],
        revalidation="",
        admitted_at=None,
    )


def _revalidate(state: NodeState, event: Event) -> NodeState:
    """Back to before `since`: what that step and those after it have reported no longer counts."""
    steps = list(Step)
    gone = {step.value for step in steps[steps.index(Step(event.data["since"])) :]}
    return replace(
        state,
        stage=Stage(event.data["to"]),
        since=event.at,
        verdict=Verdict.INCONCLUSIVE,
        cause="",
        remedy="",
        stopped_at=None,
        stopped_by="",
        attempts=0,
        revalidation=event.data["reason"],
        reports={step: report for step, report in state.reports.items() if step not in gone},
        reported_at={step: at for step, at in state.reported_at.items() if step not in gone},
    )


def _retired(state: NodeState, event: Event) -> NodeState:
    """For good. Where the machine lives on as another node, its serial belongs to that one now."""
    into = event.data["into"]
    retired = replace(
        state,
        stage=Stage.RETIRED,
        since=event.at,
        verdict=Verdict.NOT_APPLICABLE,
        cause=_farewell(event),
        remedy="",
        stopped_at=None,
        stopped_by="",
        attempts=0,
        open_acts=(),
        hold=None,
        waivers=(),
    )
    if not into:
        return retired
    return replace(retired, serial=None, former_serials=_with(state.former_serials, state.serial))


def _farewell(event: Event) -> str:
    data = event.data
    if data["into"]:
        return f"{event.actor} said that it is one machine with {data['into']}: {data['reason']}"
    wiped = ", its drives erased" if data["wiped"] else ""
    return f"retired by {event.actor}{wiped}: {data['reason']}"


def _with(serials: tuple[Serial, ...], serial: Serial | None) -> tuple[Serial, ...]:
    return serials if serial is None else (*serials, serial)


PEOPLES_HANDLERS: Mapping[Kind, Callable[[NodeState, Event], NodeState]] = {
    Kind.HOLD_SET: _hold_set,
    Kind.HOLD_LIFTED: _hold_lifted,
    Kind.WAIVER_GRANTED: _waived,
    Kind.WAIVER_REVOKED: _revoked,
    Kind.NODE_MERGED: _merged,
    Kind.NODE_RETIRED: _retired,
    Kind.REINSTALL_ORDERED: _reinstall,
    Kind.REVALIDATION_ORDERED: _revalidate,
}
