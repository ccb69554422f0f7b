"""Workers are killed with SIGKILL, or frozen past their lease, at random moments of all six steps on PostgreSQL.

The machines keep a record of their own (`lasting_fleet`): who acted on each, and when its OS was written.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from benchmarks.worker_scaling import POOL, fleet_names, order, write
from clusterctl.edges.journal import verification
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import Stage
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.runs import RunState
from clusterctl.operations.worker import BEGINS, Worker, WorkerRequest
from clusterctl_cli.stopping import stoppable
from lab.tests.lab_kit import eventually
from tests.two.conftest import PATIENCE_S, SHORT_LEASE_S
from tests.two.lasting_fleet import Record, opened
from tests.two.test_random_kills import FORKS, LEFT, is_stopped
from tests.two.test_workers import postgresql

pytestmark = pytest.mark.soak
ROUNDS, NODES = 10, 6
SCALE = 200.0
"""Times true speed: 26 s from a BMC's address to gold."""
STRIKES = BEGINS - 1
FROZEN = 0.2
EVENTS, PAUSE_S = 70, 1.0
"""A strike comes after so many further events at most, and so many seconds: four of them reach all six steps."""
READS = ("cat", "lsblk", "findmnt", "true")
"""What proves which machine answers, and from which disk: a worker that wakes may look once more."""


def work(site: Path, name: str, began: float) -> None:
    """Work as `clusterctl worker --once` does."""
    context = open_site(site, Invocation(command="worker"))
    with stoppable() as stopping, closing(context.journal):
        request = WorkerRequest(name=name, pool=POOL, poll_s=0.2, once=True)
        raise SystemExit(Worker(context, request, partial(opened, site, SCALE, began), stopping).work())


@contextmanager
def worker(site: Path, name: str, began: float) -> Iterator[BaseProcess]:
    process = FORKS.Process(target=work, args=(site, name, began))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


@pytest.fixture
def site(tmp_path: Path, url: str) -> Path:
    folder = write(tmp_path, url, NODES, SCALE)
    with (folder / "site.yml").open("a") as settings:
        settings.write(f"claims: {{lease_s: {SHORT_LEASE_S}}}\n")
    return folder


@pytest.fixture
def orderer(site: Path) -> Iterator[SiteContext]:
    context = open_site(site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        yield context


def await_moment(orderer: SiteContext, process: BaseProcess, chance: random.Random) -> bool:
    """Wait for a random moment of the worker's run; return whether the worker still works."""
    wanted = orderer.journal.health().last_seq + chance.randrange(EVENTS)
    assert eventually(lambda: orderer.journal.health().last_seq >= wanted or not process.is_alive(), PATIENCE_S)
    time.sleep(chance.random() * PAUSE_S)
    return process.is_alive()


def strike(process: BaseProcess, number: signal.Signals) -> None:
    os.kill(process.pid or 0, number)
    if number is signal.SIGKILL:
        process.join()
    else:
        assert eventually(partial(is_stopped, process.pid or 0), PATIENCE_S)


@postgresql
@pytest.mark.parametrize("number", range(ROUNDS))
def test_all_become_gold_whatever_becomes_of_workers(site: Path, orderer: SiteContext, number: int) -> None:
    """`STRIKES` workers of one run are lost, the next one ends it: each OS is written once, and no worker acts on a
    machine any more once another one has acted on it, not even a frozen one that wakes.
    """
    chance, began = random.Random(number), time.time()
    names = sorted(fleet_names(site))
    run = order(orderer, names)
    struck: list[str] = []
    frozen: list[int] = []
    with ExitStack() as stack:
        for count in range(STRIKES):
            process = stack.enter_context(worker(site, f"w{count}", began))
            if not await_moment(orderer, process, chance):
                break  # the run has ended
            stop = chance.random() < FROZEN
            strike(process, signal.SIGSTOP if stop else signal.SIGKILL)
            stages = Counter(node.stage.value for node in orderer.nodes())
            struck.append(f"{'frozen' if stop else 'killed'} at {dict(stages)}")
            frozen += [process.pid or 0] if stop else []
            assert eventually(lambda: runs.find(orderer, run).state in LEFT, PATIENCE_S)
        with worker(site, "last", began) as last:
            assert eventually(lambda: runs.find(orderer, run).state is RunState.ENDED, PATIENCE_S)
            last.join(PATIENCE_S)
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        for child in multiprocessing.active_children():
            child.join(PATIENCE_S)
    print(f"round {number}: {'; '.join(struck)}")
    assert runs.find(orderer, run).exit_code == 0
    assert {node.name: (node.stage, node.cause) for node in orderer.nodes()} == dict.fromkeys(names, (Stage.GOLD, ""))
    assert sorted(name for _, name, _ in Record(site.parent / "installs").lines()) == names
    for name in names:
        lines = Record(site.parent / "acts").lines()
        acts = [(pid, act) for pid, machine, act in lines if machine == name and act not in READS]
        turns = [(pid, [act for _, act in group]) for pid, group in itertools.groupby(acts, lambda one: one[0])]
        assert len(turns) == len({pid for pid, _ in turns}), f"{name}: {turns}"
    assert [event.kind for event in orderer.journal.history(Stream.RUN, run)].count(Kind.RUN_ENDED) == 1
    assert verification.verify(orderer.site.settings.journal).damages == ()
