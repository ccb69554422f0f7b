"""A whole run over fake steps while its PostgreSQL restarts or goes away: nothing is lost or doubled, the next run ends."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import passed
from clusterctl.fleet.fold import fold
from clusterctl.fleet.gate import Policy
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.pipeline import Pipeline
from clusterctl.steps.executor.recorder import Recorder
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.executor.step_queue import StepLimits
from tests.edges.journal.life import StepClock, added
from tests.edges.journal.postgres import PostgresServer

NODES = [f"n{number}" for number in range(6)]


@dataclass
class CountingStep:
    """Does its act once to each node that it was not done to yet, as a reading of the world would show; `interrupt` runs in the
    middle of it, once: between the intent and the effect on the third node.
    """

    step: Step
    done: Counter[str]
    interrupt: Callable[[], None] = lambda: None
    minimum: int = 1
    linger_s: float = 0.0
    at_once: int = 8
    begun: list[str] = field(default_factory=list)

    def run(self, nodes: Sequence[NodeState], acts: IntentLog, deadline: Deadline) -> Iterator[StepOutcome]:
        for node in nodes:
            if not self.done[f"{self.step.value} {node.id}"]:
                acts.intend(node.id, Act.CONFIGURE_PLAY, node.name)
                self.begun.append(node.id)
                if len(self.begun) == 3:
                    self.interrupt()
                acts.fenced([node.id], deadline).check("doing it")
                self.done[f"{self.step.value} {node.id}"] += 1
                acts.observed(node.id, Act.CONFIGURE_PLAY, "done")
            yield StepOutcome(node.id, (passed("x", "done"),))


def bootstrap(book: SqlJournal, steps: Sequence[CountingStep]) -> None:
    recorder = Recorder(book, Policy(), StepClock())
    pipeline = Pipeline(steps, recorder, dict.fromkeys(Step, StepLimits(2, 60.0)), threading.Event())
    granted = book.claim(map(NodeId, NODES), "r").granted
    try:
        pipeline.run([book.state(NodeId(node)) for node in NODES], granted)
    finally:
        book.release(granted.values())


def assert_whole(book: SqlJournal, done: Counter[str]) -> None:
    """All are configured, each act was done once and is in the journal once with its result, states are the fold."""
    assert {state.stage for state in book.states()} == {Stage.CONFIGURED}
    steps = ("discover", "install", "configure")
    assert done == Counter([f"{step} {node}" for step in steps for node in NODES])
    for node in NODES:
        events = list(book.history(Stream.NODE, node))
        kinds = Counter(event.kind for event in events)
        assert kinds[Kind.STAGE_ADVANCED] == len(steps)
        assert kinds[Kind.ACT_OBSERVED] == len(steps)
        assert book.state(NodeId(node)) == fold(events, NodeId(node))


def the_steps(done: Counter[str], interrupt: Callable[[], None] = lambda: None) -> list[CountingStep]:
    return [
        CountingStep(Step.DISCOVER, done),
        CountingStep(Step.INSTALL, done, interrupt),
        CountingStep(Step.CONFIGURE, done),
    ]


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_run_outlives_a_restart(postgresql: PostgresServer, mode: str) -> None:
    """Restarted in order, or crashed, between an intent and its effect: the run waits for it and takes all to the end."""
    done: Counter[str] = Counter()
    book = open_journal(postgresql.url(), StepClock(), Holder("r"))
    book.append([added(node) for node in NODES])
    bootstrap(book, the_steps(done, lambda: postgresql.restart(mode)))
    assert_whole(book, done)
    intents = [event.kind for node in NODES for event in book.history(Stream.NODE, node)].count(Kind.ACT_INTENDED)
    assert intents == 3 * len(NODES)
    book.close()


def test_a_run_without_its_database_ends_and_the_next_one_finishes(postgresql: PostgresServer) -> None:
    """After its patience the run ends with exit code 3 and a sentence; what it had done is not done again."""
    done: Counter[str] = Counter()
    url = postgresql.url()
    book = open_journal(url, StepClock(), Holder("r"), reconnect_s=0.5)
    book.append([added(node) for node in NODES])
    with pytest.raises(EnvironmentBrokenError, match="the journal's database failed") as broken:
        bootstrap(book, the_steps(done, postgresql.stop))
    assert broken.value.exit_code == 3
    assert sum(done.values()) < 3 * len(NODES)
    book.close()
    postgresql.start()
    again = open_journal(url, StepClock(), Holder("r2"))
    bootstrap(again, the_steps(done))
    assert_whole_after_two(again, done)
    again.close()


def assert_whole_after_two(book: SqlJournal, done: Counter[str]) -> None:
    """As `assert_whole`, but an effect whose result was never written is known by a look only."""
    assert {state.stage for state in book.states()} == {Stage.CONFIGURED}
    assert set(done.values()) == {1}
    assert len(done) == 3 * len(NODES)
    for node in NODES:
        events = list(book.history(Stream.NODE, node))
        assert Counter(event.kind for event in events)[Kind.STAGE_ADVANCED] == 3
        assert book.state(NodeId(node)) == fold(events, NodeId(node))
