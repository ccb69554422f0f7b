"""Workers: a run is carried out once, whatever becomes of the worker that has it; each OS is written once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pytest

from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads.runs import RunBegun
from clusterctl.operations import bootstrap, detached, runs, workers
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import Invocation, open_site
from clusterctl.operations.operation import Control
from clusterctl.operations.runs import RunRecord, RunState
from clusterctl.operations.workers import Workers
from lab.tests.lab_kit import eventually
from tests.two.conftest import NAMES, PATIENCE_S, Controller, Scene

sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
STEPS = (Step.DISCOVER, Step.INSTALL)
ALL_INSTALLED = dict.fromkeys(NAMES, Stage.INSTALLED)
ONCE = dict.fromkeys(NAMES, 1)


def order(scene: Scene, limit: Sequence[str] = (), priority: int = 0) -> str:
    """Order an install from elsewhere, as `bootstrap --until install --queue pod1 --detach` does; return its id."""
    context = open_site(scene.site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        request = RunRequest(steps=STEPS, limit=tuple(limit))
        preview = bootstrap.preview(context, request)
        nodes = tuple(effect.node for effect in preview.effects)
        origin = detached.Origin(
            command="bootstrap", approved=preview.digest, pool="pod1", priority=priority, nodes=nodes
        )
        return detached.order(context, request, origin).name


def find(scene: Scene, run: str) -> RunRecord:
    context = open_site(scene.site)
    with closing(context.journal):
        return runs.find(context, run)


def listed(scene: Scene) -> Workers:
    context = open_site(scene.site)
    with closing(context.journal):
        return workers.read(context)


def cancel(scene: Scene, run: str) -> None:
    context = open_site(scene.site)
    with closing(context.journal):
        assert runs.run(context, runs.CancelRequest(run=run), Control()).exit_code == 0


def start(scene: Scene, name: str, *argv: str) -> Controller:
    return scene.start("--name", name, *argv, module="tests.two.worker")


def until_ended(scene: Scene, *names: str) -> None:
    assert eventually(lambda: all(find(scene, run).state is RunState.ENDED for run in names), PATIENCE_S)
    assert [find(scene, run).exit_code for run in names] == [0] * len(names), [find(scene, run).text for run in names]


def begun_by(scene: Scene, run: str) -> list[str]:
    """The workers that began the run, oldest first."""
    events = scene.journal().history(Stream.RUN, run)
    return [event.payload.worker for event in events if isinstance(event.payload, RunBegun)]


def test_a_frozen_workers_run_is_taken_over_and_it_does_nothing_when_it_wakes(scene: Scene) -> None:
    """Frozen between the intent of an install and its request, past the lease: another worker goes on with the same run
    and ends it. The first one wakes, writes no OS, and neither the run's end nor its events are written twice.
    """
    run = order(scene)
    frozen = start(scene, "w1", "--stops-at", "n2", "--once")
    frozen.until_stopped()
    start(scene, "w2")
    until_ended(scene, run)
    frozen.wake()
    assert frozen.wait() == 0, frozen.err
    assert "another worker has taken it" in frozen.err
    assert scene.world.starts() == ONCE
    assert ("n2", frozen.pid) not in scene.world.started_by()
    assert scene.stages() == ALL_INSTALLED
    assert begun_by(scene, run) == ["w1", "w2"]
    kinds = [event.kind for event in scene.journal().history(Stream.RUN, run)]
    assert (kinds.count(Kind.RUN_ENDED), kinds.count(Kind.RUN_FINISHED)) == (1, 1)


@sqlite
@pytest.mark.parametrize("acts_before", [0, 2])
def test_a_killed_workers_run_goes_on_with_another(scene: Scene, acts_before: int) -> None:
    """Kill -9 before its first act, and between two: nothing is lost, nothing done twice. Nothing waits for the lease
    where the process is known to be dead.
    """
    run = order(scene)
    scene.world.hold("n4")
    first = start(scene, "w1", "--stops-at", "n1" if not acts_before else "none")
    if acts_before:
        assert eventually(lambda: scene.world.starts().total() >= acts_before, PATIENCE_S)
    else:
        first.until_stopped()
    first.end()
    scene.world.let_go("n4")
    assert find(scene, run).state is RunState.WAITING
    start(scene, "w2")
    until_ended(scene, run)
    assert scene.world.starts() == ONCE
    assert scene.stages() == ALL_INSTALLED


def test_two_that_take_at_once_carry_out_each_run_once(scene: Scene) -> None:
    """Four runs, two workers started together, the journal on either engine: each run has one worker, each OS is
    written once, and both end when no run is free.
    """
    names = [order(scene, [name]) for name in NAMES]
    both = [start(scene, name, "--once") for name in ("w1", "w2")]
    assert [worker.wait() for worker in both] == [0, 0], [worker.err for worker in both]
    until_ended(scene, *names)
    assert [len(begun_by(scene, run)) for run in names] == [1] * 4
    assert scene.world.starts() == ONCE
    assert listed(scene) == Workers(workers=(), waiting=())


@sqlite
def test_sigterm_hands_the_run_back(scene: Scene) -> None:
    """A worker that is asked to end while it installs stops in order; another one goes on with its run."""
    scene.world.hold("n1")
    run = order(scene)
    first = start(scene, "w1")
    scene.until_installing(*NAMES)
    (working,) = listed(scene).workers
    assert (working.name, working.pid, working.run, working.alive) == ("w1", first.pid, run, True)
    first.process.terminate()
    assert first.wait() == 0, first.err
    assert "is handed back" in first.err
    (waiting,) = listed(scene).waiting
    assert waiting.name == run
    assert "no worker of pool pod1" in waiting.why
    scene.world.let_go("n1")
    assert start(scene, "w2", "--once").wait() == 0
    until_ended(scene, run)
    assert scene.world.starts() == ONCE


@sqlite
def test_a_worker_takes_what_it_reaches_by_priority_and_age(scene: Scene) -> None:
    """A run with a BMC outside of its reach stays in the queue, and the list names the address; the others are done
    the highest priority first, then the oldest.
    """
    names = [order(scene, ["n1"]), order(scene, ["n2"]), order(scene, ["n3"], priority=5), order(scene, ["n4"])]
    start_and_end = start(scene, "w1", "--once", "--reach", "192.0.2.2/31", "192.0.2.4/32")
    assert start_and_end.wait() == 0, start_and_end.err
    assert [name for name, _ in scene.world.started_by()] == ["n3", "n2", "n4"]
    until_ended(scene, *names[1:])
    start(scene, "w2", "--reach", "192.0.2.2/31")
    assert eventually(lambda: [one.name for one in listed(scene).workers] == ["w2"], PATIENCE_S)
    (waiting,) = listed(scene).waiting
    assert waiting.name == names[0]
    assert "lacks 192.0.2.1/32" in waiting.why


@sqlite
def test_cancelled_runs_of_a_pool_end(scene: Scene) -> None:
    """One that waits never begins, with no worker at all; one that runs is stopped by its worker, wherever that is."""
    waiting = order(scene, ["n1"])
    cancel(scene, waiting)
    assert (find(scene, waiting).state, find(scene, waiting).exit_code) == (RunState.ENDED, 130)
    scene.world.hold("n2")
    running = order(scene, ["n2"])
    start(scene, "w1")
    scene.until_installing("n2")
    cancel(scene, running)
    assert eventually(lambda: find(scene, running).state is RunState.ENDED, PATIENCE_S)
    assert find(scene, running).exit_code == 130
    assert scene.world.starts() == {"n2": 1}


@sqlite
def test_an_approval_holds_for_the_preview_that_was_shown(scene: Scene) -> None:
    """Nodes that have moved on since the order: the run ends without an act."""
    late = order(scene, ["n1"])
    other = order(scene, ["n1"], priority=1)
    assert start(scene, "w1", "--once").wait() == 0
    until_ended(scene, other)
    assert find(scene, late).exit_code == 1
    assert "preview has changed" in find(scene, late).text
    assert scene.world.starts() == {"n1": 1}


@sqlite
def test_two_workers_of_one_name_do_not_work(scene: Scene) -> None:
    """The second one is refused and names the first."""
    first = start(scene, "w1")
    assert eventually(lambda: bool(listed(scene).workers), PATIENCE_S)
    second = start(scene, "w1")
    assert second.wait() == 2
    assert f"pid {first.pid} on" in second.err
