"""Workers are killed with SIGKILL, or frozen past their lease, at random moments of installs; afterwards the acts are
read back from the record of the machines themselves.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from clusterctl.edges.journal import verification
from clusterctl.fleet.event import Kind, Stream
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.runs import RunState
from clusterctl.operations.worker import BEGINS
from lab.tests.lab_kit import eventually
from tests.two.conftest import NAMES, PATIENCE_S, SHORT_LEASE_S, Scene
from tests.two.test_workers import ALL_INSTALLED, ONCE, order, postgresql
from tests.two.worker import main

pytestmark = pytest.mark.soak
ROUNDS = 50
STRIKES = BEGINS - 1
"""Workers that one run loses: after one more it is given up."""
FROZEN = 0.1
"""The share of them that is frozen past its lease, and wakes when another has ended the run; the others are killed."""
EVENTS, PAUSE_S = 12, 0.1
"""A strike comes after so many further events at most, and so many seconds."""
LEFT = (RunState.WAITING, RunState.ENDED)
"""How a run stands once no worker has it."""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.two.worker"])


@pytest.fixture
def lease_s() -> int:
    return SHORT_LEASE_S


@pytest.fixture
def orderer(scene: Scene) -> Iterator[SiteContext]:
    context = open_site(scene.site, Invocation("ann", "bootstrap"))
    with closing(context.journal):
        yield context


@contextmanager
def worker(scene: Scene, name: str) -> Iterator[BaseProcess]:
    """A worker in a process of its own, until no run is free; killed at the end of the context."""
    argv = [str(scene.site), str(scene.world.folder), "--name", name, "--once"]
    process = FORKS.Process(target=_work, args=(argv,))
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def _work(argv: list[str]) -> None:
    raise SystemExit(main(argv))


def await_moment(orderer: SiteContext, process: BaseProcess, chance: random.Random) -> bool:
    """Wait for a random moment of the worker's run; return whether the worker still works."""
    wanted = orderer.journal.health().last_seq + chance.randrange(EVENTS)
    assert eventually(lambda: orderer.journal.health().last_seq >= wanted or not process.is_alive(), PATIENCE_S)
    time.sleep(chance.random() * PAUSE_S)
    return process.is_alive()


def is_stopped(pid: int) -> bool:
    """Return whether each thread has stopped; until then one could still get the lock of the machines."""
    states = [file.read_text().rpartition(")")[2].split()[0] for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) <= {"T"}


@postgresql
@pytest.mark.parametrize("number", range(ROUNDS))
def test_each_os_is_written_once_whatever_becomes_of_workers(scene: Scene, orderer: SiteContext, number: int) -> None:
    """`STRIKES` workers of one run are lost; the next one ends it. No act is lost or done twice, a frozen worker does
    nothing when it wakes, the run ends once, and the journal is intact.
    """
    chance = random.Random(number)
    run = order(orderer)
    struck: list[str] = []
    frozen: list[int] = []
    with ExitStack() as stack:
        for strike in range(STRIKES):
            process = stack.enter_context(worker(scene, f"w{strike}"))
            if not await_moment(orderer, process, chance):
                break  # the run has ended
            stop = chance.random() < FROZEN
            with scene.world.alone():  # a machine's act and its own record of it are one
                os.kill(process.pid or 0, signal.SIGSTOP if stop else signal.SIGKILL)
                assert not stop or eventually(partial(is_stopped, process.pid or 0), PATIENCE_S)
            struck.append(f"{'frozen' if stop else 'killed'} at {orderer.journal.health().last_seq}")
            if stop:
                frozen.append(process.pid or 0)
            else:
                process.join()
            assert eventually(lambda: runs.find(orderer, run).state in LEFT, PATIENCE_S)
        with worker(scene, "last") as last:
            assert eventually(lambda: runs.find(orderer, run).state is RunState.ENDED, PATIENCE_S)
            last.join(PATIENCE_S)
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        for child in multiprocessing.active_children():
            child.join(PATIENCE_S)
    print(f"round {number}: {', '.join(struck)}")
    assert runs.find(orderer, run).exit_code == 0
    assert (scene.world.starts(), scene.stages()) == (ONCE, ALL_INSTALLED)
    assert {name for name, _ in scene.world.started_by()} == set(NAMES)
    kinds = [event.kind for event in orderer.journal.history(Stream.RUN, run)]
    assert kinds.count(Kind.RUN_ENDED) == 1
    assert Kind.RUN_FINISHED in kinds, "its steps; twice where its worker was lost right after them"
    assert verification.verify(scene.url).damages == ()
