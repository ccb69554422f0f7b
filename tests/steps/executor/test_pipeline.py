"""The executor: nodes flow on their own, nothing is lost, and what happened is in the journal before it is believed."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import event

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import CancelledError, EdgeError, EnvironmentBrokenError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Evidence, Finding, Origin, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import WavePolicy
from clusterctl.ports import Deadline
from clusterctl.steps.executor.bursts import bursts
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import install_pool
from clusterctl.steps.executor.pipeline import Observer, Pipeline, PipelineProgress
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.executor.step_queue import LINGERS, StepLimits, StepQueue
from tests.events import data_of, new_event

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEN = Evidence("fake", "lab", NOW, Origin.REAL, b"seen")


class FixedClock:
    def now(self) -> datetime:
        return NOW


@dataclass
class FakeStep:
    """Passes every node, except as the tables have it; records the batches it was given."""

    step: Step
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    waits_for: dict[str, threading.Event] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()
    error: Exception | None = None
    extra: Finding | None = None
    finding: str = "x"
    progress: str = ""
    minimum: int = 1
    linger_s: float = 0.0
    at_once: int = 8
    batches: list[list[str]] = field(default_factory=list)
    ended: dict[str, threading.Event] = field(default_factory=dict)

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        self.batches.append([node.name for node in nodes])
        if self.error is not None:
            raise self.error
        for node in sorted(nodes, key=lambda n: n.name in self.waits_for):
            if node.name in self.waits_for:
                assert self.waits_for[node.name].wait(600)
            if node.name in self.silent:
                continue
            acts.intend(node.id, Act.CONFIGURE_PLAY, node.name)
            left = self.verdicts.get(node.name, [])
            verdict = left.pop(0) if left else Verdict.PASS
            if self.progress:
                acts.progress(node.id, NOW, self.progress)
            judged = Finding(
                check=self.finding,
                verdict=verdict,
                code=Code.GPU_ECC_UNCORRECTABLE,
                cause="seen",
                remedy="repair",
                deterministic=False,
            )
            yield StepOutcome(node.id, (judged, *([self.extra] if self.extra else [])), (SEEN,))
            if node.name in self.ended:
                self.ended[node.name].set()


def fleet(book: SqlJournal, count: int) -> list[NodeState]:
    for index in range(count):
        data = {"name": f"n{index}", "bmc": f"192.0.2.{index}"}
        book.append([new_event("node", f"id{index}", Kind.NODE_DESCRIBED, data)])
    return list(book.states())


def run(
    book: SqlJournal,
    steps: Sequence[FakeStep],
    nodes: list[NodeState],
    size: int = 8,
    *,
    waves: WavePolicy | None = None,
    stops: list[str] | None = None,
    attempts: int = 2,
) -> dict[NodeId, str]:
    """Nodes that were left alone; `waves` of installs, and why they were stopped."""
    cancelled = threading.Event()
    recorder = Recorder(book, Policy(attempts=attempts), FixedClock())
    observer = Observer(on_stop=lambda _, why: (stops if stops is not None else []).append(why))
    limits = {step: StepLimits(size, 30.0, waves if step is Step.INSTALL else None) for step in Step}
    pipeline = Pipeline(steps, recorder, limits, cancelled, observer)
    claims = book.claim([node.id for node in nodes], "r").granted
    return dict(pipeline.run(nodes, claims))


@pytest.fixture
def book(tmp_path) -> Iterator[SqlJournal]:
    opened = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock())
    yield opened
    opened.close()


def stages(book: SqlJournal) -> dict[str, str]:
    return {node.name: node.stage.value for node in book.states()}


def test_nodes_go_through_all_steps(book: SqlJournal) -> None:
    """Every node ends where the last step leads, and each step was written down as started before it reported."""
    run(book, [FakeStep(Step.DISCOVER), FakeStep(Step.INSTALL)], fleet(book, 3))
    assert set(stages(book).values()) == {"installed"}
    kinds = [one.kind for one in book.history(Stream.NODE, "id0")]
    assert kinds == [
        Kind.NODE_DESCRIBED,
        *(Kind.STEP_STARTED, Kind.ACT_INTENDED, Kind.REPORT_RECORDED, Kind.STAGE_ADVANCED) * 2,
    ]


def test_a_step_begins_and_ends_for_many_nodes_together(book: SqlJournal) -> None:
    """Sixty nodes of which the step reports none: one transaction to begin, one to record them; the claims are given
    back one by one at worst.
    """
    nodes, commits = fleet(book, 60), list[int]()
    step = FakeStep(Step.DISCOVER, silent=frozenset(node.name for node in nodes))
    event.listen(book._database.engine, "commit", lambda _connection: commits.append(1))
    run(book, [step], nodes, size=64, attempts=1)
    assert [len(batch) for batch in step.batches] == [60]
    assert len(commits) < 2 * len(nodes)
    assert {node.reports["discover"].verdict for node in book.states()} == {Verdict.INCONCLUSIVE}


def test_bursts_are_what_has_come_meanwhile() -> None:
    """What came while the caller worked is one list, in its order; an error is raised after all that came before it."""
    taken, all_came = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        assert taken.wait(600)
        yield from (2, 3, 4)
        all_came.set()
        raise EdgeError("the stream broke", where="host")

    lists = bursts(items(), most=2)
    assert next(lists) == [1]
    taken.set()
    assert all_came.wait(600)
    assert [next(lists), next(lists)] == [[2, 3], [4]]
    with pytest.raises(EdgeError, match="the stream broke"):
        next(lists)


def test_a_slow_node_delays_no_other(book: SqlJournal) -> None:
    """A node that takes for ever in the first step does not keep the others from finishing the second."""
    others_done = threading.Event()
    slow = FakeStep(Step.DISCOVER, waits_for={"n0": others_done})
    fast = FakeStep(Step.INSTALL, ended={"n2": others_done})
    run(book, [slow, fast], fleet(book, 3))
    assert set(stages(book).values()) == {"installed"}
    assert fast.batches[-1] == ["n0"]


def test_a_failure_is_confirmed_once_then_quarantined(book: SqlJournal) -> None:
    """A failure that may not repeat is tried once more: twice is quarantine, once is forgiven."""
    step = FakeStep(Step.DISCOVER, verdicts={"n0": [Verdict.FAIL, Verdict.FAIL], "n1": [Verdict.FAIL]})
    run(book, [step], fleet(book, 2))
    assert stages(book) == {"n0": "quarantined", "n1": "discovered"}
    assert book.state(NodeId("id0")).remedy == "repair"


def test_a_silent_node_is_unmeasured_not_passed(book: SqlJournal) -> None:
    """A node that a step forgets is held as unmeasured, with the cause."""
    run(book, [FakeStep(Step.DISCOVER, silent=frozenset({"n1"})), FakeStep(Step.INSTALL)], fleet(book, 2))
    assert stages(book) == {"n0": "installed", "n1": "seen"}
    held = book.state(NodeId("id1"))
    assert (held.verdict, held.stopped_at) == (Verdict.INCONCLUSIVE, Step.DISCOVER)
    assert "without a report" in held.cause


@pytest.mark.parametrize("error", [EdgeError("MAAS answers nonsense"), RuntimeError("a bug")])
def test_an_exception_becomes_its_nodes_finding(book: SqlJournal, error: Exception) -> None:
    """A step that raises costs its batch a finding, never the run, never silence."""
    run(book, [FakeStep(Step.DISCOVER, error=error)], fleet(book, 2))
    assert {state.verdict for state in book.states()} == {Verdict.INCONCLUSIVE}
    assert all(state.cause for state in book.states())


def test_a_broken_environment_stops_the_run(book: SqlJournal) -> None:
    """What the controller itself lacks is no node's finding: the run ends with that error."""
    with pytest.raises(EnvironmentBrokenError):
        run(book, [FakeStep(Step.DISCOVER, error=EnvironmentBrokenError("no ibnetdiscover"))], fleet(book, 2))
    assert set(stages(book).values()) == {"seen"}


def test_a_full_disk_is_no_nodes_fault(book: SqlJournal) -> None:
    """What the system refuses the controller ends the run as well, whichever call hits it; the file is named."""
    full = OSError(errno.ENOSPC, "No space left on device", "/site/state/x")
    with pytest.raises(EnvironmentBrokenError, match="No space left on device") as caught:
        run(book, [FakeStep(Step.DISCOVER, error=full)], fleet(book, 2))
    assert caught.value.where == "/site/state/x"
    assert set(stages(book).values()) == {"seen"}


def test_batches_respect_the_sites_size(book: SqlJournal) -> None:
    """No step ever works on more nodes at once than the site allows."""
    step = FakeStep(Step.DISCOVER)
    run(book, [step], fleet(book, 7), size=3)
    assert max(len(batch) for batch in step.batches) <= 3
    assert set(stages(book).values()) == {"discovered"}


CAREFUL = WavePolicy(canary=1, at_once=4, per_rack=0, stop_percent=20, of_at_least=5)


def installs(**more: Any) -> FakeStep:
    return FakeStep(Step.INSTALL, finding="install", **more)


def test_the_canary_goes_alone(book: SqlJournal) -> None:
    """Then the others, so many at a time; every node arrives."""
    step = installs()
    left = run(book, [FakeStep(Step.DISCOVER), step], fleet(book, 9), waves=CAREFUL)
    assert left == {}
    assert len(step.batches[0]) == 1
    assert max(len(batch) for batch in step.batches) <= 4
    assert set(stages(book).values()) == {"installed"}


def test_too_many_failures_hold_the_others_back(book: SqlJournal) -> None:
    """No more begin; those left are not failed but named with the reason, the run's journal has it, others go on as
    far as they came; the next run begins with a canary again and takes them all.
    """
    stops: list[str] = []
    nodes = fleet(book, 20)
    bad = installs(verdicts={f"n{index}": [Verdict.FAIL] * 9 for index in range(20)})
    left = run(book, [FakeStep(Step.DISCOVER), bad], nodes, waves=CAREFUL, stops=stops)
    assert stops == ["5 of the last 5 machines failed, more than the 20 % that are accepted"]
    (event,) = book.history(Stream.RUN, "r")
    assert (event.kind, data_of(event)) == (Kind.WAVES_STOPPED, {"step": "install", "reason": stops[0]})
    never_begun = [state for state in book.states() if Step.INSTALL.value not in state.reports]
    assert {state.id for state in never_begun} <= left.keys()
    assert len(never_begun) >= 20 - CAREFUL.of_at_least - CAREFUL.at_once
    assert all((state.stage, state.cause) == (Stage.DISCOVERED, "") for state in never_begun)
    assert all(
        "install was not begun, because no more machines begin it: 5 of the last 5" in why for why in left.values()
    )
    book.release(book.claim(list(left), "r").granted.values())
    good = installs()
    again = [state for state in book.states() if state.next_step is Step.INSTALL and state.stopped_at is None]
    assert run(book, [good], again, waves=CAREFUL) == {}
    assert len(good.batches[0]) == 1
    assert {book.state(state.id).stage for state in again} == {Stage.INSTALLED}


def test_what_may_not_repeat_is_tried_once_more_before_it_counts(book: SqlJournal) -> None:
    """Each machine's first attempt fails and its second is good: nothing is stopped, and the canary's comes right after
    its first.
    """
    stops: list[str] = []
    step = installs(verdicts={f"n{index}": [Verdict.FAIL, Verdict.PASS] for index in range(12)})
    left = run(book, [FakeStep(Step.DISCOVER), step], fleet(book, 12), waves=CAREFUL, stops=stops)
    assert (left, stops) == ({}, [])
    assert step.batches[0] == step.batches[1]
    assert set(stages(book).values()) == {"installed"}


def test_the_progress_of_a_machine_is_shown(book: SqlJournal) -> None:
    """A machine's messages about its install go to the listener, with the step that it is at."""
    seen: list[PipelineProgress] = []
    (node,) = fleet(book, 1)
    run(book, [FakeStep(Step.DISCOVER)], [node])
    step = installs(progress="image written")
    recorder = Recorder(book, Policy(attempts=2), FixedClock())
    limits = dict.fromkeys(Step, StepLimits(8, 30.0))
    pipeline = Pipeline([step], recorder, limits, threading.Event(), Observer(on_progress=seen.append))
    pipeline.run([book.state(node.id)], book.claim([node.id], "r").granted)
    assert [(one.step, one.text) for one in seen if one.text] == [(Step.INSTALL, "image written")]


def test_a_step_that_wants_company_waits_for_it(book: SqlJournal) -> None:
    """A pair test gets two nodes together although one arrives first; the last one alone still runs."""
    gate = threading.Event()
    first = FakeStep(Step.DISCOVER, waits_for={"n1": gate}, ended={"n0": gate})
    pairs = FakeStep(Step.INSTALL, minimum=2)
    run(book, [first, pairs], fleet(book, 2))
    assert pairs.batches == [["n0", "n1"]]
    alone = FakeStep(Step.CONFIGURE, minimum=2)
    run(book, [alone], [state for state in book.states() if state.name == "n0"])
    assert alone.batches == [["n0"]]


def test_a_node_alone_waits_for_running_nodes(book: SqlJournal) -> None:
    """No node is measured alone while others are at the same step: they come back, or are partners once they are done."""
    one, two, three = fleet(book, 3)
    queue = StepQueue(FakeStep(Step.BURNIN, minimum=2), StepLimits(8, 30.0))
    queue.put(one)
    queue.put(two)
    assert queue.take(quiet=True) == [one, two]
    queue.put(three)
    assert not queue.take(quiet=True)
    queue.running.clear()
    assert queue.take(quiet=True) == [three]


def test_nodes_that_arrive_while_enough_batches_run_make_the_next_one_larger(book: SqlJournal) -> None:
    """A step that is costly to start (a play) runs few batches at a time, and takes all who wait when one ends."""
    one, two, three, four = fleet(book, 4)
    queue = StepQueue(FakeStep(Step.CONFIGURE, at_once=2), StepLimits(8, 30.0))
    for state in (one, two):
        queue.put(state)
        assert queue.take(quiet=True) == [state]
    queue.put(three)
    queue.put(four)
    assert not queue.take(quiet=True)
    queue.done(one.id)
    assert queue.take(quiet=True) == [three, four]


def test_a_long_wait_for_a_second_does_not_shorten_the_burst_it_comes_with(book: SqlJournal) -> None:
    """The bound of lingering counts from when there are enough to begin; then it holds."""
    now = [1000.0]
    queue = StepQueue(FakeStep(Step.BURNIN, minimum=2, linger_s=60.0), StepLimits(8, 30.0), clock=lambda: now[0])
    early, second, third = fleet(book, 3)
    queue.put(early)
    now[0] += 60.0 * LINGERS
    queue.put(second)
    assert not queue.take(quiet=False)
    now[0] += 60.0 * LINGERS
    queue.put(third)
    assert queue.take(quiet=False) == [early, second, third]


def test_cancelling_leaves_nodes_to_be_resumed(book: SqlJournal) -> None:
    """A cancelled run ends with words, and the next run takes the nodes on from where they stood."""
    nodes = fleet(book, 2)
    with pytest.raises(CancelledError, match="stopped"):
        _run_cancelled(book, nodes)
    assert set(stages(book).values()) == {"seen"}
    run(book, [FakeStep(Step.DISCOVER)], list(book.states()))
    assert set(stages(book).values()) == {"discovered"}


class CancellingStep(FakeStep):
    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        deadline.cancelled.set()
        deadline.check("testing")
        yield from ()


def _run_cancelled(book: SqlJournal, nodes: list[NodeState]) -> None:
    run(book, [CancellingStep(Step.DISCOVER)], nodes)


def test_stage_only_moves_by_the_gate(book: SqlJournal) -> None:
    """After a run, each node's stage is that of the fold of its events."""
    run(book, [FakeStep(Step.DISCOVER, verdicts={"n0": [Verdict.FAIL] * 2})], fleet(book, 2))
    before = book.states()
    book.rebuild()
    assert book.states() == before
    assert {state.stage for state in before} == {Stage.QUARANTINED, Stage.DISCOVERED}


@dataclass
class RobbedStep(FakeStep):
    """Another run takes `robbed` over while the step works on it."""

    robbed: str = "id1"
    book: SqlJournal | None = None

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        assert self.book is not None
        if any(node.id == self.robbed for node in nodes):
            self.book.release([acts.lease.claim(NodeId(self.robbed))])
            self.book.claim([NodeId(self.robbed)], "thief")
        yield from super().run(nodes, acts, deadline)


def test_a_node_that_was_taken_over_is_left_alone_and_the_rest_goes_on(book: SqlJournal) -> None:
    """Nothing more is written under the old claim, the node is not blamed, the others arrive, and it is reported."""
    lost = run(book, [RobbedStep(Step.DISCOVER, book=book), FakeStep(Step.INSTALL)], fleet(book, 3))
    assert stages(book) == {"n0": "installed", "n1": "seen", "n2": "installed"}
    assert list(lost) == ["id1"]
    assert "run thief" in lost[NodeId("id1")]
    assert not book.state(NodeId("id1")).cause
    assert Kind.REPORT_RECORDED not in [event.kind for event in book.history(Stream.NODE, "id1")]


def test_a_node_that_is_stopped_is_given_back_while_the_run_goes_on(book: SqlJournal) -> None:
    """A held node is free at once: an operator who repaired it does not wait for the slowest of the fleet."""
    person: list[bool] = []

    class Watching(FakeStep):
        def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
            while not person and deadline.remaining:
                person.extend(node == "id1" for node in book.claim([NodeId("id1")], "person").granted)
            yield from super().run(nodes, acts, deadline)

    first = FakeStep(Step.DISCOVER, verdicts={"n1": [Verdict.INCONCLUSIVE] * 2})
    run(book, [first, Watching(Step.INSTALL)], fleet(book, 2))
    assert person == [True]
    assert stages(book) == {"n0": "installed", "n1": "seen"}


def test_a_node_that_a_person_holds_is_not_touched(book: SqlJournal) -> None:
    """No step is begun on it, and nothing is written of it; one whose hold has ended goes its way."""
    fleet(book, 3)
    for node, until in (("id0", None), ("id1", "2026-01-01T00:00:00+00:00"), ("id2", "2027-01-01T00:00:00+00:00")):
        book.append([new_event("node", node, Kind.HOLD_SET, {"reason": "ticket 7", "until": until})])
    nodes = list(book.states())
    step = FakeStep(Step.DISCOVER)
    assert run(book, [step], nodes) == {}
    assert step.batches == [["n1"]]
    assert (book.state(nodes[0].id), book.state(nodes[2].id)) == (nodes[0], nodes[2])


def test_what_is_waived_advances_and_stays_what_it_is(book: SqlJournal) -> None:
    """Quarantined, waived, released, run again: the node goes on with a warning, its report still has FAIL."""
    (node,) = fleet(book, 1)
    verdicts = {"n0": [Verdict.FAIL] * 3}
    passing = Finding(check="y", verdict=Verdict.PASS, code=Code.PASSED)
    run(book, [FakeStep(Step.DISCOVER, verdicts, extra=passing)], [node])
    assert book.state(node.id).stage is Stage.QUARANTINED
    until = "2026-02-01T00:00:00+00:00"
    waiver = {"check": "x", "subject": "", "reason": "known", "until": until}
    book.append([new_event("node", node.id, Kind.WAIVER_GRANTED, waiver)])
    book.append([new_event("node", node.id, Kind.NODE_RELEASED, {"to": "seen", "reason": "waived"})])
    run(book, [FakeStep(Step.DISCOVER, verdicts, extra=passing)], [book.state(node.id)])
    after = book.state(node.id)
    assert (after.stage, after.verdict) == (Stage.DISCOVERED, Verdict.WARN)
    assert after.reports["discover"].verdict is Verdict.FAIL


def test_installs_wait_for_those_of_other_runs(book: SqlJournal) -> None:
    """While another run has all permits nothing is installed, and the reason is reported for each node; then all are."""
    pool, reported, waiting = install_pool(book, 2), set[str](), threading.Event()
    others = pool.take(2)

    def note(progress: PipelineProgress) -> None:
        if progress.text:
            reported.add(f"{progress.state.name}: {progress.text}")
        if len(reported) == 3:
            waiting.set()

    limits = dict.fromkeys(Step, StepLimits(8, 30.0)) | {Step.INSTALL: StepLimits(8, 30.0, permits=pool)}
    steps = [FakeStep(Step.DISCOVER), FakeStep(Step.INSTALL)]
    pipeline = Pipeline(
        steps, Recorder(book, Policy(attempts=2), FixedClock()), limits, threading.Event(), Observer(note)
    )
    nodes = fleet(book, 3)
    claims = book.claim([node.id for node in nodes], "r").granted
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(pipeline.run, nodes, claims)
        try:
            assert waiting.wait(600)
            assert "installed" not in stages(book).values()
        finally:
            book.release(others.values())
        assert running.result(600) == {}
    assert set(stages(book).values()) == {"installed"}
    assert max(map(len, steps[1].batches)) <= 2
    assert not [owner for owner in book.owners("install permit ") if owner.live]


def test_a_run_keeps_its_nodes_and_permits_while_its_terminal_is_stopped(tmp_path) -> None:
    """Ctrl-S stops the thread that prints: the claims on the nodes under way and on their installs are renewed."""
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", lease_s=0.4))
    pool, printed, free = install_pool(book, 2), threading.Event(), threading.Event()

    def stopped(progress: PipelineProgress) -> None:
        if progress.step is Step.INSTALL and progress.decision is not None:
            printed.set()
            assert free.wait(600)

    def expiries() -> dict[str, datetime]:
        return {owner.subject: owner.expires for owner in book.owners("")}

    steps = [FakeStep(Step.DISCOVER), FakeStep(Step.INSTALL, waits_for={"n1": free})]
    limits = dict.fromkeys(Step, StepLimits(8, 600.0)) | {Step.INSTALL: StepLimits(8, 600.0, permits=pool)}
    nodes = fleet(book, 2)
    pipeline = Pipeline(
        steps, Recorder(book, Policy(attempts=2), FixedClock()), limits, threading.Event(), Observer(stopped)
    )
    claims = book.claim([node.id for node in nodes], "r").granted
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(pipeline.run, nodes, claims)
        try:
            assert printed.wait(600)
            before = expiries()
            assert len(before) == 4
            until = time.monotonic() + 600
            while not all(now > before[subject] for subject, now in expiries().items()):
                assert time.monotonic() < until
        finally:
            free.set()
        assert running.result(600) == {}
    book.close()
