"""The fold follows only the moves of the stage table, so does every operator's decision, and the page shows the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.decisions.decision import hold, quarantine, release
from clusterctl.fleet.decisions.identity import leaving, merge, retire, retired
from clusterctl.fleet.decisions.permissions import require_living
from clusterctl.fleet.decisions.reinstall import ordered, reinstallable
from clusterctl.fleet.decisions.revalidate import repair, revalidate
from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Payload, node_event
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import PATH, RevalidationOrigin, Serial, Stage, Step
from clusterctl.fleet.payloads.decisions import (
    HoldLifted,
    HoldSet,
    NodeMerged,
    NodeReleased,
    NodeRetired,
    ReinstallOrdered,
    RevalidationOrdered,
)
from clusterctl.fleet.payloads.node import NodeAddressed, NodeHeld, NodeQuarantined, StageAdvanced, StepStarted
from clusterctl.fleet.stages import TABLE, Move
from clusterctl.fleet.state import NodeState
from tests.events import new_event
from tests.fleet.people import FINE, LATER, NOW, PROOF, after, node, reported
from tests.paths import ROOT, needs_checkout

PAGE = ROOT / "docs/reference/node-stages.md"
STAGES, STEPS = st.sampled_from(Stage), st.sampled_from(Step)
MOVES: dict[type[Payload], Move] = {
    StageAdvanced: Move.ADVANCE,
    NodeHeld: Move.STOP,
    NodeQuarantined: Move.QUARANTINE,
    NodeReleased: Move.RELEASE,
    RevalidationOrdered: Move.REVALIDATE,
    ReinstallOrdered: Move.REINSTALL,
    NodeMerged: Move.MERGE,
    NodeRetired: Move.RETIRE,
}
"""The move that a kind of event is. An event of any other kind is none."""


def moved(move: Move, to: Stage, step: Step) -> Payload:
    """Return a payload that moves a node so. `to` counts only where the payload names a stage."""
    stop = {"cause": "7 GPUs", "remedy": "reseat GPU 3", "verdict": Verdict.FAIL}
    made: dict[Move, Callable[[], Payload]] = {
        Move.ADVANCE: lambda: StageAdvanced(to=to, verdict=Verdict.PASS),
        Move.STOP: lambda: NodeHeld(step=step, **stop),
        Move.QUARANTINE: lambda: NodeQuarantined(step=step, **stop),
        Move.RELEASE: lambda: NodeReleased(to=to, reason="repaired"),
        Move.REVALIDATE: lambda: RevalidationOrdered(
            since=step, to=to, was=Stage.GOLD, origin=RevalidationOrigin.NIGHT, reason="nightly"
        ),
        Move.REINSTALL: lambda: ReinstallOrdered(reason="new OS", serial="S1", root_disk="D", was=Stage.GOLD),
        Move.MERGE: lambda: NodeMerged(node="n1", old="S1", new=Serial("S2"), reason="board swapped"),
        Move.RETIRE: lambda: NodeRetired(reason="sold"),
    }
    return made[move]()


OTHER = st.sampled_from(
    [
        HoldSet(reason="mine"),
        HoldLifted(reason="done"),
        StepStarted(step=Step.INSTALL),
        NodeAddressed(address="192.0.2.7"),
    ]
)
ANY = st.builds(moved, st.sampled_from(Move), STAGES, STEPS) | OTHER


def likely(stage: Stage) -> st.SearchStrategy[Payload]:
    """Return payloads that a node at this stage may take, so that sequences come far."""
    known = [(move, to) for move, stages in TABLE[stage].items() for to in sorted(stages, key=list(Stage).index)]
    return st.builds(lambda pair, step: moved(*pair, step), st.sampled_from(known), STEPS) if known else ANY


def target(payload: Payload, stage: Stage) -> Stage:
    """Return the stage to which the payload leads a node that is at `stage`."""
    fixed = {
        Move.STOP: stage,
        Move.QUARANTINE: Stage.QUARANTINED,
        Move.REINSTALL: Stage.DISCOVERED,
        Move.MERGE: Stage.SEEN,
        Move.RETIRE: Stage.RETIRED,
    }
    return fixed.get(MOVES[type(payload)]) or Stage(payload.to)  # type: ignore[attr-defined]


@given(st.data())
def test_the_fold_follows_the_table_and_nothing_else(data: st.DataObject) -> None:
    """Any sequence of events: a move that the table has leads where it shows; any other is refused and changes nothing."""
    state = node(Stage.SEEN)
    for _ in range(data.draw(st.integers(1, 25))):
        payload = data.draw(likely(state.stage) | ANY)
        move = MOVES.get(type(payload))
        if move is None:
            assert after(state, [node_event(state.id, payload)]).stage is state.stage
            continue
        to = target(payload, state.stage)
        if to in TABLE[state.stage].get(move, frozenset()):
            state = after(state, [node_event(state.id, payload)])
            assert state.stage is to
        else:
            with pytest.raises(ConflictError):
                after(state, [node_event(state.id, payload)])


def _gate(state: NodeState, move: Move) -> Sequence[NewEvent]:
    """Return what the gate decides after the next step."""
    step = state.next_step
    if step is None:
        raise UsageError("no step is next")
    return [node_event(state.id, moved(move, step.leads_to, step))]


def _merge(state: NodeState, _step: Step) -> Sequence[NewEvent]:
    """Another machine was discovered in its place."""
    new = Serial(f"{state.serial or 'S'}x")
    seen = replace(FINE, check="identity", serial=new, evidence=(PROOF,))
    return merge(reported(state, "discover", seen), new, "board swapped", (), None).events


def _reinstall(state: NodeState, _step: Step) -> Sequence[NewEvent]:
    reinstallable(state, NOW, from_pool=True)
    return [ordered(state, "new OS", (PROOF,))]


def _wipe(state: NodeState, _step: Step) -> Sequence[NewEvent]:
    require_living(state)
    return [leaving(state, "sold"), retired(state, "sold", (PROOF,))]


DECISIONS: dict[str, Callable[[NodeState, Step], Sequence[NewEvent]]] = {
    "advance": lambda state, _: _gate(state, Move.ADVANCE),
    "stop": lambda state, _: _gate(state, Move.STOP),
    "fail": lambda state, _: _gate(state, Move.QUARANTINE),
    "hold": lambda state, _: hold(state, "mine", LATER).events,
    "release": lambda state, _: release(state, "repaired").events,
    "quarantine": lambda state, step: quarantine(state, "smoke", "", step).events,
    "quarantine as it stands": lambda state, _: quarantine(state, "smoke", "", None).events,
    "revalidate": lambda state, _: revalidate(state, repair(state, ()), "", (), NOW).events,
    "reinstall": _reinstall,
    "merge": _merge,
    "retire": lambda state, _: retire(state, "sold").events,
    "wipe": _wipe,
}
INSTALLED = {"act": "install.start", "target": "S1"}


@given(st.lists(st.tuples(st.sampled_from([*DECISIONS, *["advance"] * 8]), STEPS), min_size=1, max_size=25))
def test_every_decision_that_is_permitted_is_in_the_table(decisions: list[tuple[str, Step]]) -> None:
    """Whatever operators and gate decide one after the other, a decision that is permitted is never refused by the fold."""
    state = node(Stage.SEEN)
    state = after(state, [new_event("node", state.id, Kind.ACT_INTENDED, INSTALLED)])
    state = after(state, [new_event("node", state.id, Kind.ACT_OBSERVED, {"act": "install.start", "result": "done"})])
    for name, step in decisions:
        try:
            events = DECISIONS[name](state, step)
        except UsageError:
            continue
        for event in events:
            before = state.stage
            state = after(state, [event])
            move = MOVES.get(type(event.payload))
            assert state.stage in (TABLE[before][move] if move is not None else {before})


def test_retired_is_the_end() -> None:
    """Each stage but this one can be left, and no node is lost on the way: each is reached from the first."""
    assert [stage for stage in Stage if not TABLE[stage]] == [Stage.RETIRED]
    reached = {Stage.SEEN}
    for _ in Stage:
        reached |= {to for stage in reached for stages in TABLE[stage].values() for to in stages}
    assert reached == set(Stage)


_HEAD = """\
# Which stages can a node move to?

A node's stage changes only by the moves of this table. The journal refuses every other move: the decision was then made
for a stage that the node has left, and the command reports it. A test writes this page from `clusterctl.fleet.stages`.

| move | decided by | meaning |
|---|---|---|
| advance | the gate | the node passes a step |
| stop | the gate | the node stays before a step that could not be measured |
| quarantine | the gate, or `clusterctl quarantine` and `clusterctl retire --wipe` | the node is out of use |
| release | `clusterctl release` | a stopped node goes back before the step that stopped it |
| revalidate | `clusterctl revalidate`, or the night | the node repeats its steps from one of them on |
| reinstall | `clusterctl install --reinstall` | the node gets its OS again |
| merge | `clusterctl merge` | another machine is this node from now on |
| retire | `clusterctl retire` | the node is out of the site for good |

"""


def page() -> str:
    """Return the page: one row for each stage, one column for each move, the stages to which it may lead in the cells."""
    order = [*PATH, Stage.QUARANTINED, Stage.RETIRED]
    rows = [f"| stage | {' | '.join(move.value for move in Move)} |", f"|{'---|' * (len(Move) + 1)}"]
    for stage in order:
        cells = [", ".join(f"`{to.value}`" for to in order if to in TABLE[stage].get(move, ())) for move in Move]
        rows.append(f"| `{stage.value}` | {' | '.join(cell or '–' for cell in cells)} |")
    return _HEAD + "\n".join(rows) + "\n"


@needs_checkout
def test_the_page_is_the_table() -> None:
    """The page is written again where CLUSTERCTL_WRITE_PAGES is set."""
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page()
