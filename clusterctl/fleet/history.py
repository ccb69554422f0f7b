"""What the journal says of a node: the fold of its events. The stored `node_state` must always equal this fold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.finding import Finding, Report, Verdict
from clusterctl.fleet.node import Inventory, Location, Mac, NodeId, Serial, Stage, Verb


@dataclass(frozen=True, slots=True)
class OpenAct:
    """A side effect that was intended and whose result nobody wrote down: look at the world before acting again."""

    act: str
    target: str
    seq: int


@dataclass(frozen=True, slots=True)
class NodeState:
    """Where a node stands, and why.

    cause, remedy  in plain words, of what keeps it back; empty when nothing does
    stopped_at     the step that held or quarantined it
    attempts       how often the step that comes next was started since the node last moved
    inventory      what its BMC last told of it
    reports        the last report of each step by its name, and when it was written
    """

    id: NodeId
    name: str = ""
    stage: Stage = Stage.SEEN
    since: datetime | None = None
    verdict: Verdict = Verdict.INCONCLUSIVE
    cause: str = ""
    remedy: str = ""
    stopped_at: Verb | None = None
    bmc: str = ""
    location: Location = field(default_factory=Location)
    expected_serial: Serial | None = None
    serial: Serial | None = None
    inventory: Inventory | None = None
    sku: str = ""
    root_disk: Serial | None = None
    address: str = ""
    host_key: str = ""
    attempts: int = 0
    acts: Mapping[str, int] = field(default_factory=dict)
    open_acts: tuple[OpenAct, ...] = ()
    reports: Mapping[str, Report] = field(default_factory=dict)
    reported_at: Mapping[str, datetime] = field(default_factory=dict)
    events: int = 0
    last_seq: int = 0

    @property
    def macs(self) -> tuple[Mac, ...]:
        """Of its Ethernet ports, as far as its BMC knows them."""
        nics = self.inventory.nics if self.inventory else None
        return tuple(nic.mac for nic in nics or ())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What keeps the node back: the root findings of the step that stopped it."""
        if self.stopped_at is None or self.stopped_at.value not in self.reports:
            return ()
        return self.reports[self.stopped_at.value].roots()

    @property
    def next_verb(self) -> Verb | None:
        return self.stage.next_verb


@dataclass(frozen=True, slots=True)
class Summary:
    """A node in one line: what lists and plans need of thousands of nodes."""

    id: NodeId
    name: str
    stage: Stage
    verdict: Verdict
    since: datetime | None
    cause: str
    remedy: str
    stopped_at: Verb | None
    bmc: str
    location: Location
    expected_serial: Serial | None
    serial: Serial | None
    sku: str
    root_disk: Serial | None
    address: str

    @property
    def next_verb(self) -> Verb | None:
        return self.stage.next_verb


def summarise(state: NodeState) -> Summary:
    return Summary(**{name: getattr(state, name) for name in Summary.__slots__})


# Adapters take tens of milliseconds to build: each is built when it is first needed.


@cache
def _report_adapter() -> TypeAdapter[Report]:
    return TypeAdapter(Report)


@cache
def _inventory_adapter() -> TypeAdapter[Inventory]:
    return TypeAdapter(Inventory)


@cache
def _state_adapter() -> TypeAdapter[NodeState]:
    return TypeAdapter(NodeState)


@cache
def _summary_adapter() -> TypeAdapter[Summary]:
    return TypeAdapter(Summary)


def report_to_data(report: Report) -> dict[str, Any]:
    """A report as JSON-able data, for an event."""
    return dict(_report_adapter().dump_python(report, mode="json"))


def report_from_data(data: Mapping[str, Any]) -> Report:
    return _report_adapter().validate_python(data, strict=False)


def inventory_to_data(inventory: Inventory) -> dict[str, Any]:
    """An inventory as JSON-able data, for an event."""
    return dict(_inventory_adapter().dump_python(inventory, mode="json"))


def inventory_from_data(data: Mapping[str, Any]) -> Inventory:
    return _inventory_adapter().validate_python(data, strict=False)


def state_to_json(state: NodeState) -> str:
    return _state_adapter().dump_json(state).decode()


def state_from_json(text: str | bytes) -> NodeState:
    return _state_adapter().validate_json(text)


def summary_to_json(state: NodeState) -> str:
    return _summary_adapter().dump_json(summarise(state)).decode()


def summary_from_json(text: str | bytes) -> Summary:
    return _summary_adapter().validate_json(text)


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
    return replace(
        state,
        acts={**state.acts, act: state.acts.get(act, 0) + 1},
        open_acts=(*(a for a in state.open_acts if a.act != act), OpenAct(act, target, event.seq)),
    )


def _observed(state: NodeState, event: Event) -> NodeState:
    return replace(state, open_acts=tuple(a for a in state.open_acts if a.act != event.data["act"]))


def _reported(state: NodeState, event: Event) -> NodeState:
    report = report_from_data(event.data["report"])
    return replace(
        state,
        reports={**state.reports, report.step: report},
        reported_at={**state.reported_at, report.step: event.at},
    )


def _advanced(state: NodeState, event: Event) -> NodeState:
    return replace(
        state,
        stage=Stage(event.data["to"]),
        verdict=Verdict(event.data["verdict"]),
        since=event.at,
        cause="",
        remedy="",
        stopped_at=None,
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
        stopped_at=Verb(event.data["step"]),
    )


def _held(state: NodeState, event: Event) -> NodeState:
    return _stopped(state, event, state.stage)


def _quarantined(state: NodeState, event: Event) -> NodeState:
    return _stopped(state, event, Stage.QUARANTINED)


def _released(state: NodeState, event: Event) -> NodeState:
    return replace(
        state,
        stage=Stage(event.data["to"]),
        verdict=Verdict.INCONCLUSIVE,
        since=event.at,
        cause="",
        remedy="",
        stopped_at=None,
        attempts=0,
    )


_HANDLERS: Mapping[Kind, Callable[[NodeState, Event], NodeState]] = {
    Kind.NODE_DESCRIBED: _described,
    Kind.NODE_IDENTIFIED: _identified,
    Kind.NODE_ADDRESSED: _addressed,
    Kind.HOST_KEY_PINNED: _host_key,
    Kind.STEP_STARTED: _started,
    Kind.ACT_INTENDED: _intended,
    Kind.ACT_OBSERVED: _observed,
    Kind.REPORT_RECORDED: _reported,
    Kind.STAGE_ADVANCED: _advanced,
    Kind.NODE_HELD: _held,
    Kind.NODE_QUARANTINED: _quarantined,
    Kind.NODE_RELEASED: _released,
}
