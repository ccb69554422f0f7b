"""`--queue auto`: nodes go to the workers that reach them, as runs of one order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import partial

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Stage, Step
from clusterctl.operations import pods, runs, workers
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.detached import Origin
from clusterctl.operations.pods import RunGroup, WorkerGroup
from clusterctl.operations.runs import RunState
from clusterctl.operations.worker import Worker, WorkerRequest
from clusterctl.operations.workers import WorkerRecord
from lab.tests.lab_kit import eventually
from tests.cli.site_of_three import run
from tests.two.conftest import NAMES, PATIENCE_S, Scene
from tests.two.worker import opened

sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def live(name: str, pool: str, *reach: str) -> WorkerRecord:
    return WorkerRecord(name=name, pool=pool, reach=reach, host="h", pid=1, started=NOON, seen=NOON, alive=True)


@contextmanager
def working(scene: Scene, name: str, pool: str, *reach: str) -> Iterator[None]:
    """A worker in a thread meanwhile."""
    stopping = threading.Event()

    def work() -> None:
        context = open_site(scene.site, Invocation(command="worker"))
        request = WorkerRequest(name=name, pool=pool, reach=reach, poll_s=0.1)
        with closing(context.journal):
            Worker(context, request, partial(opened, scene.site, scene.world, ""), stopping).work()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


@pytest.fixture
def looking(scene: Scene) -> Iterator[SiteContext]:
    context = open_site(scene.site)
    with closing(context.journal):
        yield context


def until_live(context: SiteContext, count: int) -> None:
    assert eventually(lambda: len(workers.read(context).workers) == count, PATIENCE_S)


def group_of(context: SiteContext, name: str) -> RunGroup:
    found = pods.find(context, name)
    assert isinstance(found, RunGroup)
    return found


def test_nodes_go_to_the_workers_with_the_fewest_addresses_that_reach_all_of_theirs() -> None:
    """BMC and host of a node may be in two networks; a worker that reaches everything takes what no other one does."""
    needed = {"a": ["10.1.0.1", "10.1.9.1"], "b": ["10.2.0.1"], "c": ["10.1.0.2", "10.2.0.2"], "d": ["bmc.site"]}
    there = [live("w1", "pod1", "10.1.0.0/16"), live("w2", "pod2", "10.2.0.0/16"), live("w3", "pod2", "10.2.0.0/16")]
    both, every = live("w4", "both", "10.0.0.0/8"), live("w5", "every")
    assert pods.grouped(needed, [every, both, *there]) == {
        WorkerGroup(pool="pod1", reach=("10.1.0.0/16",)): ("a",),
        WorkerGroup(pool="pod2", reach=("10.2.0.0/16",)): ("b",),
        WorkerGroup(pool="both", reach=("10.0.0.0/8",)): ("c",),
        WorkerGroup(pool="every"): ("d",),
    }
    with pytest.raises(UsageError, match=r"reaches c \(10\.1\.0\.2/32, 10\.2\.0\.2/32\); d \(bmc\.site\)"):
        pods.grouped(needed, there)
    with pytest.raises(UsageError, match="no worker works"):
        pods.grouped(needed, [])


@sqlite
def test_each_pods_worker_installs_its_own_nodes(scene: Scene, looking: SiteContext) -> None:
    """One order, two pods: two runs that `list` shows as one line, each carried out by the worker that reaches its
    nodes; each OS is written once. A node that no worker reaches is refused by its name, and nothing is ordered.
    """
    command = ("bootstrap", "--until", "install", "--queue", "auto", "--yes", "--detach")
    with ExitStack() as there:
        there.enter_context(working(scene, "w1", "pod1", "192.0.2.0/31", "192.0.2.100/32"))
        until_live(looking, 1)
        with pytest.raises(UsageError, match=r"reaches n2 \(192\.0\.2\.2/32\); n3"):
            run(scene.site, *command)
        assert runs.read(looking) == ()
        there.enter_context(working(scene, "w2", "pod2", "192.0.2.2/31", "192.0.2.4/32", "192.0.2.100/32"))
        until_live(looking, 2)
        ordered = json.loads(run(scene.site, *command, "--json").stdout)
        name = ordered["name"]
        assert eventually(lambda: not group_of(looking, name).active, PATIENCE_S)
    group = group_of(looking, name[:-1])
    assert (group.state, group.exit_code) == (RunState.ENDED, 0)
    assert [(one.pool, one.worker, one.request["limit"], one.parent) for one in group.runs] == [
        ("pod1", "w1", ["n1"], name),
        ("pod2", "w2", ["n2", "n3", "n4"], name),
    ]
    assert scene.world.starts() == dict.fromkeys(NAMES, 1)
    assert scene.stages() == dict.fromkeys(NAMES, Stage.INSTALLED)
    (line,) = run(scene.site, "runs", "list").output.splitlines()[1:]
    assert line.startswith(f"{name}  ended 0")
    shown = run(scene.site, "runs", "show").output
    assert all(f"{name}.{number}" in shown for number in (1, 2))
    assert run(scene.site, "runs", "show", f"{name}.2").output.startswith(f"run {name}.2: ended 0")
    with pytest.raises(UsageError, match="an order of 2 runs"):
        run(scene.site, "runs", "retry", name, "--yes")


@sqlite
def test_an_order_is_cancelled_as_a_whole(scene: Scene, looking: SiteContext) -> None:
    """Its runs that wait never begin."""
    parts = [
        pods.RunPart(pool=pool, nodes=(node,), request=RunRequest(steps=(Step.INSTALL,), limit=(node,)), approved="")
        for pool, node in (("pod1", "n1"), ("pod2", "n2"))
    ]
    name = pods.order(looking, parts, Origin(command="bootstrap"))
    assert group_of(looking, name).state is RunState.WAITING
    assert run(scene.site, "runs", "cancel", name, "--yes").return_value == 0
    assert [one.exit_code for one in group_of(looking, name).runs] == [130, 130]
    with pytest.raises(UsageError, match="all of its runs have ended"):
        run(scene.site, "runs", "cancel", name, "--yes")
