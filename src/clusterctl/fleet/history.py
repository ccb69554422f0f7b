"""What the journal says of a node: the fold of its events. The stored `node_state` must always equal this fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from clusterctl.fleet.codec import inventory_from_data, report_from_data
from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.history_people import PEOPLES_HANDLERS
from clusterctl.fleet.node import Location, NodeId, Stage, Step
from clusterctl.fleet.reinstall import REBOOT, START
from clusterctl.fleet.state import NodeState, OpenAct


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
