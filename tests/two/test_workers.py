"""Workers: a run is carried out once, whatever becomes of the worker that has it; each OS is written once.

Workers that are killed or frozen are processes; the others are threads of the test, which costs less.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import pytest

from clusterctl.fleet.errors import JournalUnavailableError, UsageError
from clusterctl.fleet.event import Event as RecordedEvent
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.payloads.runs import RunBegun, RunEnded
from clusterctl.operations import bootstrap, detached, runs, workers
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.operation import Control
from clusterctl.operations.runs import RunState
from clusterctl.operations.worker import BEGINS, Worker, WorkerRequest
from clusterctl.operations.workers import Workers
from clusterctl.ports import Claim, Claims, Journal
from lab.tests.lab_kit import eventually
from tests.two.conftest import LEASE_S, NAMES, PATIENCE_S, SHORT_LEASE_S, Controller, Scene
from tests.two.worker import opened

sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
short_lease = pytest.mark.parametrize("lease_s", [SHORT_LEASE_S])
postgresql = pytest.mark.parametrize("url", ["postgresql"], indirect=True)
STEPS = (Step.DISCOVER, Step.INSTALL)
ALL_INSTALLED = dict.fromkeys(NAMES, Stage.INSTALLED)
ONCE = dict.fromkeys(NAMES, 1)


@pytest.fixture
def orderer(scene: Scene) -> Iterator[SiteContext]:
    """The site on the machine of the one who orders and looks; it does no work."""
    context = open_site(scene.site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        yield context


def order(orderer: SiteContext, limit: Sequence[str] = (), priority: int = 0) -> str:
    """Order an install as `bootstrap --until install --queue pod1 --detach` does; return its id."""
    request = RunRequest(steps=STEPS, limit=tuple(limit))
    preview = bootstrap.preview(orderer, request)
    origin = detached.Origin(
        command="bootstrap",
        approved=preview.digest,
        pool="pod1",
        priority=priority,
        nodes=tuple(effect.node for effect in preview.effects),
    )
    return detached.order(orderer, request, origin).name


def cancel(orderer: SiteContext, run: str) -> None:
    assert runs.run(orderer, runs.CancelRequest(run=run), Control()).exit_code == 0


def start(scene: Scene, name: str, *argv: str, within: Sequence[str] = ()) -> Controller:
    return scene.start("--name", name, *argv, module="tests.two.worker", within=within)


def work(scene: Scene, name: str, stopping: threading.Event, *reach: str, once: bool = True) -> int:
    """Work as a worker in this thread: until no run is free, or `stopping` is set."""
    context = open_site(scene.site, Invocation(command="worker"))
    request = WorkerRequest(name=name, pool="pod1", reach=reach, once=once, poll_s=0.1)
    with closing(context.journal):
        return Worker(context, request, partial(opened, scene.site, scene.world, ""), stopping).work()


@contextmanager
def working(scene: Scene, name: str) -> Iterator[threading.Event]:
    """Work in another thread meanwhile; yield what stops it, as SIGTERM does."""
    stopping = threading.Event()
    thread = threading.Thread(target=work, args=(scene, name, stopping), kwargs={"once": False})
    thread.start()
    try:
        yield stopping
    finally:
        stopping.set()
        thread.join()


def until_ended(orderer: SiteContext, *names: str) -> None:
    assert eventually(lambda: all(runs.find(orderer, run).state is RunState.ENDED for run in names), PATIENCE_S)
    assert [runs.find(orderer, run).exit_code for run in names] == [0] * len(names)


def begun_by(orderer: SiteContext, run: str) -> list[str]:
    """The workers that began the run, oldest first."""
    events = orderer.journal.history(Stream.RUN, run)
    return [event.payload.worker for event in events if isinstance(event.payload, RunBegun)]


@short_lease
def test_a_frozen_workers_run_is_taken_over_and_it_does_nothing_when_it_wakes(
    scene: Scene, orderer: SiteContext
) -> None:
    """Frozen between the intent of an install and its request, past the lease: another worker goes on with the same run
    and ends it. The first one wakes, writes no OS, and neither the run's end nor its events are written twice.
    """
    run = order(orderer)
    frozen = start(scene, "w1", "--stops-at", "n2", "--once")
    frozen.until_stopped()
    scene.until_expired()
    scene.set_lease(LEASE_S)
    with working(scene, "w2"):
        until_ended(orderer, run)
    frozen.wake()
    assert frozen.wait() == 0, frozen.err
    assert "another worker has taken it" in frozen.err
    assert scene.world.starts() == ONCE
    assert ("n2", frozen.pid) not in scene.world.started_by()
    assert scene.stages() == ALL_INSTALLED
    assert begun_by(orderer, run) == ["w1", "w2"]
    kinds = [event.kind for event in orderer.journal.history(Stream.RUN, run)]
    assert (kinds.count(Kind.RUN_ENDED), kinds.count(Kind.RUN_FINISHED)) == (1, 1)


@postgresql
def test_a_killed_workers_run_goes_on_with_another(scene: Scene, orderer: SiteContext) -> None:
    """Kill -9 between two acts, then once more: nothing is lost, nothing done twice. Nothing waits for the lease where
    the process is known to be dead.
    """
    run = order(orderer)
    scene.world.hold("n4")
    first = start(scene, "w1")
    scene.until_installing("n1")
    first.end()
    assert runs.find(orderer, run).state is RunState.WAITING
    second = start(scene, "w2")
    scene.until_installing(*NAMES)
    second.end()
    scene.world.let_go("n4")
    with working(scene, "w3"):
        until_ended(orderer, run)
    assert scene.world.starts() == ONCE
    assert scene.stages() == ALL_INSTALLED


@pytest.mark.soak
@sqlite
def test_a_worker_that_is_killed_before_its_first_act_loses_nothing(scene: Scene, orderer: SiteContext) -> None:
    """The intent is written, the act is not done: the next worker does it."""
    run = order(orderer)
    first = start(scene, "w1", "--stops-at", "n1")
    first.until_stopped()
    first.end()
    assert work(scene, "w2", threading.Event()) == 0
    until_ended(orderer, run)
    assert scene.world.starts() == ONCE


@postgresql
def test_two_that_take_at_once_carry_out_each_run_once(scene: Scene, orderer: SiteContext) -> None:
    """Four runs, two workers on PostgreSQL: each run is begun once, each OS is written once."""
    names = [order(orderer, [name]) for name in NAMES]
    with working(scene, "w1"), working(scene, "w2"):
        until_ended(orderer, *names)
    assert [len(begun_by(orderer, run)) for run in names] == [1] * 4
    assert scene.world.starts() == ONCE
    assert workers.read(orderer) == Workers(workers=(), waiting=())


@sqlite
def test_a_run_goes_on_where_the_journal_was_too_busy(scene: Scene, orderer: SiteContext) -> None:
    """Other writers on a busy machine are no failure of the run: it goes on, and its end is written once."""
    run = order(orderer)
    calls = itertools.count()

    def busy_once(invocation: Invocation) -> SiteContext:
        if next(calls) == 1:  # the first is the preview's
            raise JournalUnavailableError("other clusterctl processes have been writing to the journal for 30 seconds")
        return opened(scene.site, scene.world, "", invocation)

    context = open_site(scene.site, Invocation(command="worker"))
    request = WorkerRequest(name="w1", pool="pod1", once=True, poll_s=0.1)
    with closing(context.journal):
        assert Worker(context, request, busy_once, threading.Event()).work() == 0
    until_ended(orderer, run)
    kinds = [event.kind for event in orderer.journal.history(Stream.RUN, run)]
    assert (kinds.count(Kind.RUN_HANDED_BACK), kinds.count(Kind.RUN_ENDED)) == (1, 1)
    assert begun_by(orderer, run) == ["w1", "w1"]
    assert scene.world.starts() == ONCE


class RefusingJournal:
    """The journal of a worker whose server takes no event `refused` times."""

    def __init__(self, journal: Journal, refused: int) -> None:
        self._journal = journal
        self.left = refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[RecordedEvent, ...]:
        if isinstance(events[0].payload, RunBegun) and self.left:
            self.left -= 1
            raise JournalUnavailableError("the journal's database failed: connection refused")
        return self._journal.append(events, claim=claim)


@sqlite
def test_a_worker_waits_for_a_journal_that_does_not_answer(scene: Scene, orderer: SiteContext) -> None:
    """It takes no run while the journal takes nothing, names the cause once, and works as soon as the journal does."""
    run = order(orderer)
    context, stopping, messages = open_site(scene.site, Invocation(command="worker")), threading.Event(), list[str]()
    journal = RefusingJournal(context.journal, 3)
    request = WorkerRequest(name="w1", pool="pod1", poll_s=0.1)
    worker = Worker(
        replace(context, journal=cast("Journal", journal)),
        request,
        partial(opened, scene.site, scene.world, ""),
        stopping,
        lambda event: messages.append(str(event)),
    )
    with closing(context.journal), ThreadPoolExecutor(1) as pool:
        working = pool.submit(worker.work)
        try:
            until_ended(orderer, run)
        finally:
            stopping.set()
        assert working.result() == 0
    assert journal.left == 0
    assert sum("waits for the journal" in message for message in messages) == 1
    assert scene.world.starts() == ONCE


@sqlite
def test_a_worker_that_stops_hands_its_run_back(scene: Scene, orderer: SiteContext) -> None:
    """A worker that is asked to end while it installs stops in order; another one goes on with its run."""
    scene.world.hold("n1")
    run = order(orderer)
    with working(scene, "w1"):
        scene.until_installing(*NAMES)
        (record,) = workers.read(orderer).workers
        assert (record.name, record.run, record.alive) == ("w1", run, True)
    (waiting,) = workers.read(orderer).waiting
    assert waiting.name == run
    assert "no worker of pool pod1" in waiting.why
    scene.world.let_go("n1")
    assert work(scene, "w2", threading.Event()) == 0
    until_ended(orderer, run)
    assert begun_by(orderer, run) == ["w1", "w2"]
    assert scene.world.starts() == ONCE


@sqlite
def test_a_worker_takes_what_it_reaches_by_priority_and_age(scene: Scene, orderer: SiteContext) -> None:
    """A run with a BMC outside of its reach stays in the queue, and the list names the address; the others are done
    the highest priority first, then the oldest.
    """
    first, *others = [order(orderer, [name], priority=5 if name == "n3" else 0) for name in NAMES]
    assert work(scene, "w1", threading.Event(), "192.0.2.2/31", "192.0.2.4/32") == 0
    assert [name for name, _ in scene.world.started_by()] == ["n3", "n2", "n4"]
    until_ended(orderer, *others)
    assert [run.name for run in workers.read(orderer).waiting] == [first]


@sqlite
def test_cancelled_runs_of_a_pool_end(scene: Scene, orderer: SiteContext) -> None:
    """One that waits never begins, with no worker at all; one that runs is stopped by its worker, wherever that is."""
    waiting = order(orderer, ["n1"])
    cancel(orderer, waiting)
    assert (runs.find(orderer, waiting).state, runs.find(orderer, waiting).exit_code) == (RunState.ENDED, 130)
    scene.world.hold("n2")
    running = order(orderer, ["n2"])
    with working(scene, "w1"):
        scene.until_installing("n2")
        cancel(orderer, running)
        assert eventually(lambda: runs.find(orderer, running).state is RunState.ENDED, PATIENCE_S)
    assert runs.find(orderer, running).exit_code == 130
    assert scene.world.starts() == {"n2": 1}


@sqlite
def test_an_approval_holds_for_the_preview_that_was_shown(scene: Scene, orderer: SiteContext) -> None:
    """Nodes that have moved on since the order: the run ends without an act."""
    late, other = order(orderer, ["n1"]), order(orderer, ["n1"], priority=1)
    assert work(scene, "w1", threading.Event()) == 0
    until_ended(orderer, other)
    assert runs.find(orderer, late).exit_code == 1
    assert begun_by(orderer, late) == []
    assert scene.world.starts() == {"n1": 1}


class EndsFirst:
    """A journal in which the run ends just before it is claimed."""

    def __init__(self, journal: Journal, run: str) -> None:
        self._journal, self._run = journal, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    def claim(self, nodes: Sequence[NodeId], run: str) -> Claims:
        self._journal.append([NewEvent(Stream.RUN, self._run, RunEnded(exit_code=0))])
        return self._journal.claim(nodes, run)


@sqlite
def test_a_run_that_ends_while_it_is_cancelled_ends_once(scene: Scene, orderer: SiteContext) -> None:
    """It ended well, and is reported so: it was not cancelled."""
    run = order(orderer, ["n1"])
    racing = replace(orderer, journal=cast("Journal", EndsFirst(orderer.journal, run)))
    (outcome,) = runs.run(racing, runs.CancelRequest(run=run), Control()).outcomes
    assert outcome.text == "it has ended meanwhile"
    record = runs.find(orderer, run)
    assert (record.exit_code, record.cancelled_by) == (0, "")


@sqlite
def test_a_preview_that_fails_ends_its_run_and_no_worker(scene: Scene, orderer: SiteContext) -> None:
    """Whatever the error is: the run ends with it, and the worker takes the next one."""
    first, second = order(orderer, ["n1"]), order(orderer, ["n2"])

    def broken(invocation: Invocation) -> SiteContext:
        if invocation.run == first:
            raise ValueError("a number that is none")
        return opened(scene.site, scene.world, "", invocation)

    context = open_site(scene.site, Invocation(command="worker"))
    request = WorkerRequest(name="w1", pool="pod1", once=True, poll_s=0.1)
    with closing(context.journal):
        assert Worker(context, request, broken, threading.Event()).work() == 0
    ended = [runs.find(orderer, run) for run in (first, second)]
    assert [(record.exit_code, record.text) for record in ended] == [(1, "ValueError: the log has it"), (0, "")]


@sqlite
def test_a_run_that_ends_its_workers_is_given_up(scene: Scene, orderer: SiteContext) -> None:
    """After `BEGINS` lost workers it ends with exit code 3, and no further worker is lost to it."""
    run = order(orderer, ["n1"])
    subject = runs.claim_on(run)
    for number in range(BEGINS):
        claim = orderer.journal.claim([subject], f"lost-{number}").granted[subject]
        begun = RunBegun(process=runs.this_process(), worker=f"w{number}")
        orderer.journal.append([NewEvent(Stream.RUN, run, begun)], claim=claim)
        orderer.journal.release([claim])
    assert work(scene, "w1", threading.Event()) == 0
    (ended,) = [e.payload for e in orderer.journal.history(Stream.RUN, run) if isinstance(e.payload, RunEnded)]
    assert ended.exit_code == 3
    assert scene.world.starts() == {}


@sqlite
def test_two_workers_of_one_name_do_not_work(scene: Scene) -> None:
    """The second one is refused."""
    with working(scene, "w1"):
        context = open_site(scene.site)
        with closing(context.journal):
            assert eventually(lambda: bool(workers.read(context).workers), PATIENCE_S)
        with pytest.raises(UsageError, match="of this name"):
            work(scene, "w1", threading.Event())
