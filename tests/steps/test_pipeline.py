"""The executor: nodes flow on their own, nothing is lost, and what happened is in the journal before it is believed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.fleet.errors import CancelledError, EdgeError, EnvironmentBrokenError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Evidence, Finding, Origin, Verdict
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.node import NodeId, Stage, Verb
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.record import Recorder
from clusterctl.steps.run import LINGERS, Pipeline, Progress, _Lane
from clusterctl.steps.step import Acts, Outcome

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEN = Evidence("fake", "lab", NOW, Origin.REAL, b"seen")


class FixedClock:
    def now(self) -> datetime:
        return NOW


@dataclass
class FakeStep:
    """Passes every node, but for what the tables say; remembers the batches it was given."""

    verb: Verb
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    waits_for: dict[str, threading.Event] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    error: Exception | None = None
    minimum: int = 1
    linger_s: float = 0.0
    batches: list[list[str]] = field(default_factory=list)
    ended: dict[str, threading.Event] = field(default_factory=dict)

    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        self.batches.append([node.name for node in nodes])
        if self.error is not None:
            raise self.error
        for node in sorted(nodes, key=lambda n: n.name in self.waits_for):
            if node.name in self.waits_for:
                assert self.waits_for[node.name].wait(10)
            if node.name in self.silent:
                continue
            acts.intend(node.id, f"{self.verb.value}.do", node.name)
            left = self.verdicts.get(node.name, [])
            verdict = left.pop(0) if left else Verdict.PASS
            yield Outcome(node.id, (Finding("x", verdict, cause="seen", remedy="mend", deterministic=False),), (SEEN,))
            if node.name in self.ended:
                self.ended[node.name].set()


def fleet(book: SqlJournal, count: int) -> list[NodeState]:
    for index in range(count):
        data = {"name": f"n{index}", "bmc": f"192.0.2.{index}"}
        book.append([NewEvent("node", f"id{index}", Kind.NODE_DESCRIBED, data)])
    return list(book.states())


def run(book: SqlJournal, steps: Sequence[FakeStep], nodes: list[NodeState], size: int = 8) -> list[Progress]:
    seen: list[Progress] = []
    cancelled = threading.Event()
    recorder = Recorder(book, Policy(attempts=2), FixedClock())
    pipeline = Pipeline(
        steps,
        book,
        recorder,
        sizes=dict.fromkeys(Verb, size),
        deadlines=dict.fromkeys(Verb, 30.0),
        watch=seen.append,
        cancelled=cancelled,
    )
    claims = book.claim([node.id for node in nodes], "r").granted
    pipeline.run(nodes, claims)
    return seen


@pytest.fixture
def book(tmp_path) -> Iterator[SqlJournal]:
    opened = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock())
    yield opened
    opened.close()


def stages(book: SqlJournal) -> dict[str, str]:
    return {node.name: node.stage.value for node in book.states()}


def test_nodes_go_through_all_steps(book: SqlJournal) -> None:
    """Every node ends where the last step leads, and each step was written down as started before it reported."""
    run(book, [FakeStep(Verb.DISCOVER), FakeStep(Verb.INSTALL)], fleet(book, 3))
    assert set(stages(book).values()) == {"installed"}
    kinds = [event.kind for event in book.history("node", "id0")]
    assert kinds == [
        Kind.NODE_DESCRIBED,
        *(Kind.STEP_STARTED, Kind.ACT_INTENDED, Kind.REPORT_RECORDED, Kind.STAGE_ADVANCED) * 2,
    ]


def test_a_slow_node_holds_nobody(book: SqlJournal) -> None:
    """A node that takes for ever in the first step does not keep the others from finishing the second."""
    others_done = threading.Event()
    slow = FakeStep(Verb.DISCOVER, waits_for={"n0": others_done})
    fast = FakeStep(Verb.INSTALL, ended={"n2": others_done})
    run(book, [slow, fast], fleet(book, 3))
    assert set(stages(book).values()) == {"installed"}
    assert fast.batches[-1] == ["n0"]


def test_a_failure_is_confirmed_once_then_quarantined(book: SqlJournal) -> None:
    """A failure that may not repeat is tried once more: twice is quarantine, once is forgiven."""
    step = FakeStep(Verb.DISCOVER, verdicts={"n0": [Verdict.FAIL, Verdict.FAIL], "n1": [Verdict.FAIL]})
    run(book, [step], fleet(book, 2))
    assert stages(book) == {"n0": "quarantined", "n1": "discovered"}
    assert book.state(NodeId("id0")).remedy == "mend"


def test_a_silent_node_is_unmeasured_not_passed(book: SqlJournal) -> None:
    """A node that a step forgets is held as unmeasured, with words."""
    run(book, [FakeStep(Verb.DISCOVER, silent=frozenset({"n1"})), FakeStep(Verb.INSTALL)], fleet(book, 2))
    assert stages(book) == {"n0": "installed", "n1": "seen"}
    held = book.state(NodeId("id1"))
    assert (held.verdict, held.stopped_at) == (Verdict.INCONCLUSIVE, Verb.DISCOVER)
    assert "without a word" in held.cause


@pytest.mark.parametrize("error", [EdgeError("MAAS answers nonsense"), RuntimeError("a bug")])
def test_an_exception_becomes_its_nodes_finding(book: SqlJournal, error: Exception) -> None:
    """A step that raises costs its batch a finding, never the run, never silence."""
    run(book, [FakeStep(Verb.DISCOVER, error=error)], fleet(book, 2))
    assert {state.verdict for state in book.states()} == {Verdict.INCONCLUSIVE}
    assert all(state.cause for state in book.states())


def test_a_broken_environment_stops_the_run(book: SqlJournal) -> None:
    """What the controller itself lacks is nobody's finding: the run ends with that error."""
    with pytest.raises(EnvironmentBrokenError):
        run(book, [FakeStep(Verb.DISCOVER, error=EnvironmentBrokenError("no ibnetdiscover"))], fleet(book, 2))
    assert set(stages(book).values()) == {"seen"}


def test_batches_respect_the_sites_size(book: SqlJournal) -> None:
    """No step ever works on more nodes at once than the site allows."""
    step = FakeStep(Verb.DISCOVER)
    run(book, [step], fleet(book, 7), size=3)
    assert max(len(batch) for batch in step.batches) <= 3
    assert set(stages(book).values()) == {"discovered"}


def test_a_step_that_wants_company_waits_for_it(book: SqlJournal) -> None:
    """A pair test gets two nodes together although one arrives first; the last one alone still runs."""
    gate = threading.Event()
    first = FakeStep(Verb.DISCOVER, waits_for={"n1": gate}, ended={"n0": gate})
    pairs = FakeStep(Verb.INSTALL, minimum=2)
    run(book, [first, pairs], fleet(book, 2))
    assert pairs.batches == [["n0", "n1"]]
    alone = FakeStep(Verb.CONFIGURE, minimum=2)
    run(book, [alone], [state for state in book.states() if state.name == "n0"])
    assert alone.batches == [["n0"]]


def test_a_node_alone_waits_for_those_who_run(book: SqlJournal) -> None:
    """Nobody is measured alone while others are at the same step: they come back, or are company once they are done."""
    one, two, three = fleet(book, 3)
    lane = _Lane(FakeStep(Verb.BURNIN, minimum=2), 8, 30.0)
    lane.put(one)
    lane.put(two)
    assert lane.take(quiet=True) == [one, two]
    lane.put(three)
    assert not lane.take(quiet=True)
    lane.running.clear()
    assert lane.take(quiet=True) == [three]


def test_a_long_wait_for_a_second_does_not_shorten_the_burst_it_comes_with(book: SqlJournal) -> None:
    """The bound of lingering counts from when there are enough to begin; then it holds."""
    lane = _Lane(FakeStep(Verb.BURNIN, minimum=2, linger_s=60.0), 8, 30.0)
    early, second, third = fleet(book, 3)
    lane.put(early)
    lane.first -= 60.0 * LINGERS
    lane.put(second)
    assert not lane.take(quiet=False)
    lane.first -= 60.0 * LINGERS
    lane.put(third)
    assert lane.take(quiet=False) == [early, second, third]


def test_cancelling_leaves_nodes_to_be_resumed(book: SqlJournal) -> None:
    """A cancelled run ends with words, and the next run takes the nodes on from where they stood."""
    nodes = fleet(book, 2)
    with pytest.raises(CancelledError, match="stopped"):
        _run_cancelled(book, nodes)
    assert set(stages(book).values()) == {"seen"}
    run(book, [FakeStep(Verb.DISCOVER)], list(book.states()))
    assert set(stages(book).values()) == {"discovered"}


class CancellingStep(FakeStep):
    def run(self, nodes: Sequence[NodeState], acts: Acts, deadline: Deadline) -> Iterator[Outcome]:
        deadline.cancelled.set()
        deadline.check("testing")
        yield from ()


def _run_cancelled(book: SqlJournal, nodes: list[NodeState]) -> None:
    run(book, [CancellingStep(Verb.DISCOVER)], nodes)


def test_stage_only_moves_by_the_gate(book: SqlJournal) -> None:
    """After a run, each node's stage is what the fold of its events says."""
    run(book, [FakeStep(Verb.DISCOVER, verdicts={"n0": [Verdict.FAIL] * 2})], fleet(book, 2))
    before = book.states()
    book.rebuild()
    assert book.states() == before
    assert {state.stage for state in before} == {Stage.QUARANTINED, Stage.DISCOVERED}
