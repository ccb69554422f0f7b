"""Workers of one run are lost at random moments: killed with SIGKILL, or frozen until another one has ended the run."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from clusterctl.operations import runs
from clusterctl.operations.context import SiteContext
from clusterctl.operations.runs import RunState
from clusterctl.operations.worker import BEGINS
from lab.tests.lab_kit import eventually
from tests.two.conftest import PATIENCE_S

MOST = BEGINS - 1
"""Workers that one run loses: after one more it is given up."""
LEFT = (RunState.WAITING, RunState.ENDED)
"""How a run stands once no worker has it."""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.two.worker"])


@contextmanager
def worker(work: Callable[..., Any], *arguments: object) -> Iterator[BaseProcess]:
    """A worker in a process of its own; killed at the end of the context."""
    process = FORKS.Process(target=work, args=arguments)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


@dataclass(frozen=True, kw_only=True)
class Losses:
    """When workers are lost, and how.

    start    starts a worker of this name
    events   a worker is lost after so many further events at most,
    pause_s  and so many seconds
    frozen   the share of them that is frozen past its lease; the others are killed
    alone    while a worker is lost, no machine acts: its act and its own record of it are one
    look     what is kept of the moment
    """

    orderer: SiteContext
    start: Callable[[str], AbstractContextManager[BaseProcess]]
    events: int
    pause_s: float
    frozen: float
    look: Callable[[], object]
    alone: Callable[[], AbstractContextManager[None]] = nullcontext

    def until_ended(self, run: str, chance: random.Random) -> list[str]:
        """Lose `MOST` workers of the run, let one more end it, and wake the frozen ones; return what was done when."""
        done: list[str] = []
        frozen: list[int] = []
        with ExitStack() as stack:
            for number in range(MOST):
                process = stack.enter_context(self.start(f"w{number}"))
                if not self._await_moment(process, chance):
                    break  # the run has ended
                stop = chance.random() < self.frozen
                self._lose(process, stop=stop)
                done.append(f"{'frozen' if stop else 'killed'} at {self.look()}")
                frozen += [process.pid or 0] if stop else []
                assert eventually(lambda: runs.find(self.orderer, run).state in LEFT, PATIENCE_S)
            with self.start("last") as last:
                assert eventually(lambda: runs.find(self.orderer, run).state is RunState.ENDED, PATIENCE_S)
                last.join(PATIENCE_S)
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
            for child in multiprocessing.active_children():
                child.join(PATIENCE_S)
        return done

    def _await_moment(self, process: BaseProcess, chance: random.Random) -> bool:
        """Wait for a random moment of the worker's run; return whether the worker still works."""
        journal = self.orderer.journal
        wanted = journal.health().last_seq + chance.randrange(self.events)
        assert eventually(lambda: journal.health().last_seq >= wanted or not process.is_alive(), PATIENCE_S)
        time.sleep(chance.random() * self.pause_s)
        return process.is_alive()

    def _lose(self, process: BaseProcess, *, stop: bool) -> None:
        with self.alone():
            os.kill(process.pid or 0, signal.SIGSTOP if stop else signal.SIGKILL)
            assert not stop or eventually(partial(_is_stopped, process.pid or 0), PATIENCE_S)
        if not stop:
            process.join()


def _is_stopped(pid: int) -> bool:
    """Return whether each thread has stopped; until then one could still act."""
    states = [file.read_text().rpartition(")")[2].split()[0] for file in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) <= {"T"}
