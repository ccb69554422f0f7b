"""What people's decisions do to a node's state: the part of the fold that is theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from clusterctl.fleet.codec import inventory_from_data, report_from_data
from clusterctl.fleet.decisions.reinstall import REBOOT, START
from clusterctl.fleet.decisions.waiver import Waiver
from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Location, NodeId, Serial, Stage, Step
from clusterctl.fleet.state import NodeState, OpenAct, OperatorHold


def _hold_set(state: NodeState, event: Event) -> NodeState:
    until = event.data.get("until")
    ends = datetime.fromisoformat(until) if until else None
    return replace(state, hold=OperatorHold(event.data["reason"], event.actor, event.at, ends))


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


def fold(events: Iterable[Event], node: NodeId) -> NodeState:
    """The state of `node` after `events` (its own stream, in `seq` order)."""
    state = NodeState(node)
    for event in events:
        state = apply(state, event)
    return state


def apply(state: NodeState, event: Event) -> NodeState:
    """One more event. Kinds that say nothing about a node's state only count."""
    handler = _HANDLERS.get(event.kind)
    changed = handler(state, event) if handler else state
    return replace(changed, events=state.events + 1, last_seq=event.seq)


def _described(state: NodeState, event: Event) -> NodeState:
    data = event.data
    return replace(
        state,
        name=data["name"],
        bmc=data["bmc"],
        location=Location(data.get("rack", ""), data.get("unit")),
        expected_serial=data.get("serial") or None,
        boot_mac=data.get("boot_mac") or None,
        since=state.since or event.at,
    )


def _identified(state: NodeState, event: Event) -> NodeState:
    data = event.data
    inventory = inventory_from_data(data["inventory"])
    return replace(
        state,
        serial=inventory.serial,
        inventory=inventory,
        sku=data["sku"],
        root_disk=data.get("root_disk") or None,
    )


def _addressed(state: NodeState, event: Event) -> NodeState:
    return replace(state, address=event.data["address"])


def _host_key(state: NodeState, event: Event) -> NodeState:
    return replace(state, host_key=event.data["public"])


def _started(state: NodeState, _event: Event) -> NodeState:
    return replace(state, attempts=state.attempts + 1)


def _intended(state: NodeState, event: Event) -> NodeState:
    act, target = event.data["act"], event.data["target"]
    over = {act, REBOOT} if act == START else {act}  # whoever is installed anew leaves its last boot behind
    return replace(
        state,
        reinstall="" if act == START else state.reinstall,
        acts={**state.acts, act: state.acts.get(act, 0) + 1},
        open_acts=(*(a for a in state.open_acts if a.act not in over), OpenAct(act, target, event.seq)),
    )


def _observed(state: NodeState, event: Event) -> NodeState:
    return replace(state, open_acts=tuple(a for a in state.open_acts if a.act != event.data["act"]))


def _progress(state: NodeState, event: Event) -> NodeState:
    at, words = datetime.fromisoformat(event.data["at"]), event.data["words"]
    earlier = state.progress if state.progress_at == at else ()
    return replace(state, progress_at=at, progress=(*earlier, words))


def _reported(state: NodeState, event: Event) -> NodeState:
    report = report_from_data(event.data["report"])
    return replace(
        state,
        reports={**state.reports, report.step: report},
        reported_at={**state.reported_at, report.step: event.at},
    )


def _advanced(state: NodeState, event: Event) -> NodeState:
    moved = _moved(state, event, Verdict(event.data["verdict"]))
    return replace(moved, revalidation="", admitted_at=event.at) if moved.stage is Stage.GOLD else moved


def _released(state: NodeState, event: Event) -> NodeState:
    """By a person who has mended it: what it was rebooted for before that is over."""
    fresh = replace(state, open_acts=tuple(act for act in state.open_acts if act.act != REBOOT))
    return _moved(fresh, event, Verdict.INCONCLUSIVE)


def _moved(state: NodeState, event: Event, verdict: Verdict) -> NodeState:
    """To another stage, where nothing keeps it back."""
    return replace(
        state,
        stage=Stage(event.data["to"]),
        verdict=verdict,
        since=event.at,
        cause="",
        remedy="",
        stopped_at=None,
        stopped_by="",
        attempts=0,
    )


def _stopped(state: NodeState, event: Event, stage: Stage) -> NodeState:
    return replace(
        state,
        stage=stage,
        verdict=Verdict(event.data["verdict"]),
        since=event.at,
        cause=event.data["cause"],
        remedy=event.data["remedy"],
        stopped_at=Step(event.data["step"]),
        stopped_by=event.actor if event.data.get("by_person") else "",
    )


def _held(state: NodeState, event: Event) -> NodeState:
    return _stopped(state, event, state.stage)


def _quarantined(state: NodeState, event: Event) -> NodeState:
    return _stopped(state, event, Stage.QUARANTINED)


_HANDLERS: Mapping[Kind, Callable[[NodeState, Event], NodeState]] = {
    Kind.NODE_DESCRIBED: _described,
    Kind.NODE_IDENTIFIED: _identified,
    Kind.NODE_ADDRESSED: _addressed,
    Kind.HOST_KEY_PINNED: _host_key,
    Kind.STEP_STARTED: _started,
    Kind.ACT_INTENDED: _intended,
    Kind.ACT_OBSERVED: _observed,
    Kind.INSTALL_PROGRESS: _progress,
    Kind.REPORT_RECORDED: _reported,
    Kind.STAGE_ADVANCED: _advanced,
    Kind.NODE_HELD: _held,
    Kind.NODE_QUARANTINED: _quarantined,
    Kind.NODE_RELEASED: _released,
    **PEOPLES_HANDLERS,
}
