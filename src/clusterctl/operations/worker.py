"""A worker: takes runs of its pool from the journal and carries them out, one at a time, each under a claim on it.

take over   a run whose worker is gone or frozen is free once its claim has expired; at once where its process is known
            to be dead. It goes on where its nodes stand
hand back   on SIGTERM: the run stops as by Ctrl-C, what is done is kept, and another worker goes on; also where the
            journal takes nothing for too long
wait        where the journal does not answer: the worker tries again until it does, or until it is stopped
fence       the run's journal takes nothing without the claim: a worker that wakes too late changes nothing
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from clusterctl.fleet.errors import (
    CancelledError,
    ClaimLostError,
    ClusterctlError,
    EnvironmentBrokenError,
    JournalUnavailableError,
    UsageError,
)
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.runs import RunBegun, RunEnded, RunHandedBack, WorkerStarted, WorkerStopped
from clusterctl.fleet.reach import network
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.detached import carry_out, ending, operation_of, request_of
from clusterctl.operations.operation import Control, Event, ignore, lossy
from clusterctl.operations.run_log import run_log
from clusterctl.operations.runs import RunRecord, claim_on, this_process
from clusterctl.operations.work_queue import WorkQueue
from clusterctl.ports import Claim
from clusterctl.ports.journal import WORKERS
from clusterctl.steps.executor.lease import kept, repeated

log = logging.getLogger(__name__)

POLL_S = 2.0
"""Between two looks at the queue."""
TURN_S = 1.0
"""Between two looks at requests to stop a run."""
BEGINS = 5
"""So often a run is begun before it counts as failed: one that ends its worker each time would stop them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRequest:
    """`name`: of no other live worker. `reach`: networks; none: it reaches all. `once`: end when no run is free."""

    name: str
    pool: str
    reach: tuple[str, ...] = ()
    once: bool = False
    poll_s: float = POLL_S


def _opened(folder: Path) -> Callable[[Invocation], SiteContext]:
    return lambda invocation: open_site(folder, invocation, thorough=True)


@dataclass(frozen=True, slots=True)
class Worker:
    """Works until `stopping` is set. `opened` opens the site for one run, with everything that it names."""

    context: SiteContext
    request: WorkerRequest
    opened: Callable[[Invocation], SiteContext]
    stopping: threading.Event
    on_event: Callable[[Any], None] = ignore
    _gone: threading.Event = field(default_factory=threading.Event)
    _away: threading.Event = field(default_factory=threading.Event)

    def work(self) -> int:
        """Carry out runs; return 0. Raises `ClaimLostError` where another worker has taken this one's name."""
        queue = WorkQueue(self.context.journal)
        with self._present():
            while not self.stopping.is_set():
                if self._gone.is_set():
                    raise ClaimLostError(
                        "another worker has this name", where=self.request.name, remedy="give each its own --name"
                    )
                if not self._turn(queue):
                    if self.request.once:
                        break
                    self.stopping.wait(self.request.poll_s)
        return 0

    @contextmanager
    def _present(self) -> Iterator[None]:
        """Hold the claim on the worker's name meanwhile: its expiry is when it was last seen."""
        journal, subject = self.context.journal, worker_claim(self.request.name)
        claims = journal.claim([subject], self.context.run)
        if subject not in claims.granted:
            remedy = "give each worker a --name of its own"
            raise UsageError(f"a worker of this name works: {claims.refused[subject]}", where="--name", remedy=remedy)
        claim = claims.granted[subject]
        started = WorkerStarted(pool=self.request.pool, process=this_process(), reach=self.request.reach)
        try:
            journal.append([NewEvent(Stream.WORKER, self.request.name, started)], claim=claim)
            with kept(journal, {subject: claim}, self._gone.set):
                yield
            if not self._gone.is_set():
                journal.append([NewEvent(Stream.WORKER, self.request.name, WorkerStopped())], claim=claim)
        finally:
            journal.release([claim])

    def _turn(self, queue: WorkQueue) -> bool:
        """Carry out the first free run. Return False where there is none, or where the journal does not answer."""
        try:
            found = self._one(queue)
        except JournalUnavailableError as error:
            if self.request.once:
                raise
            if not self._away.is_set():
                log.warning("the worker waits for the journal: %s", error)
                self.on_event(Event(node=self.request.name, text=f"waits for the journal: {error}"))
            self._away.set()
            return False
        self._away.clear()
        return found

    def _one(self, queue: WorkQueue) -> bool:
        """Take the first free run and carry it out; return False where there is none."""
        queue.refresh()
        for run in queue.free(self.request.pool, self.request.reach):
            subject = claim_on(run.name)
            claim = self.context.journal.claim([subject], self.context.run).granted.get(subject)
            if claim is None:
                continue
            try:
                self._attempt(queue, run.name, claim)
            except ClaimLostError as lost:
                self._report(run.name, f"another worker has taken it: {lost.message}")
            finally:
                self.context.journal.release([claim])
            return True
        return False

    def _attempt(self, queue: WorkQueue, run: str, claim: Claim) -> None:
        """Begin the run that is claimed, or go on with it, unless it has ended meanwhile."""
        record = runs.find(self.context, run)
        if not record.active:
            return
        cancelled = threading.Event()
        with kept(self.context.journal, {claim.node: claim}, cancelled.set):
            refused = self._refused(record, claim)
            if refused is not None:
                self._write(record, claim, refused)
                return
            self._write(record, claim, RunBegun(process=this_process(), worker=self.request.name))
            approved = record.approved if not record.process else ""
            self._report(run, f"begins: {record.command}, by {record.actor}")
            with self._watched(queue, run, cancelled):
                self._carry_out(record, claim, Control(approved or None, self.on_event, cancelled, self.stopping))

    def _refused(self, record: RunRecord, claim: Claim) -> RunEnded | None:
        """Return the end of a run that must not begin: cancelled, begun too often, or not what was approved."""
        if record.cancelled_by:
            return RunEnded(exit_code=CancelledError.exit_code, text="it was cancelled while no worker had it")
        if record.begins >= BEGINS:
            text = f"it was begun {record.begins} times and never came to its end; read the logs of its workers"
            return RunEnded(exit_code=EnvironmentBrokenError.exit_code, text=text)
        if record.process is not None or not record.approved:
            return None
        try:
            context = self.opened(Invocation(record.actor, record.command, record.name, claim))
            try:
                found = operation_of(record.operation).preview(context, request_of(record))
                Control(record.approved).require(found)
            finally:
                context.journal.close()
        except Exception as error:  # noqa: BLE001 — it would end one worker after the other, since none has begun the run
            code, text = ending(error)
            return RunEnded(exit_code=code, text=text)
        return None

    def _carry_out(self, record: RunRecord, claim: Claim, control: Control) -> None:
        named = replace(self.context, run=record.name)
        with run_log(named):
            try:
                code, text = carry_out(record, control, self.opened, claim)
            except JournalUnavailableError as error:
                self._hand_back(record, claim, str(error))
                return
            log.info("the run has ended here with exit code %d%s", code, f": {text}" if text else "")
        handed_back = code == CancelledError.exit_code and self.stopping.is_set()
        if handed_back and not runs.find(self.context, record.name).cancelled_by:
            self._hand_back(record, claim, "this worker stops")
        else:
            self._write(record, claim, RunEnded(exit_code=code, text=text))
            self._report(record.name, f"has ended with exit code {code}")

    def _hand_back(self, record: RunRecord, claim: Claim, reason: str) -> None:
        self._write(record, claim, RunHandedBack(worker=self.request.name))
        self._report(record.name, f"is handed back: {reason}")

    def _watched(self, queue: WorkQueue, run: str, cancelled: threading.Event) -> AbstractContextManager[None]:
        """Set `cancelled` when an operator cancels the run, or this worker is to stop."""

        def watch() -> bool:
            if not cancelled.is_set() and (self.stopping.is_set() or self._is_cancelled(queue, run)):
                cancelled.set()
            return not cancelled.is_set()

        return repeated(watch, min(TURN_S, self.request.poll_s), "requests to stop")

    def _is_cancelled(self, queue: WorkQueue, run: str) -> bool:
        try:
            queue.refresh()
        except ClusterctlError:  # the journal does not answer: the run itself finds out
            return False
        return queue.cancelled(run)

    def _write(self, record: RunRecord, claim: Claim, payload: Payload) -> None:
        self.context.journal.append([NewEvent(Stream.RUN, record.name, payload)], claim=claim)

    def _report(self, run: str, text: str) -> None:
        log.info("run %s %s", run, text)
        self.on_event(Event(node=run, text=text))


def worker_claim(name: str) -> NodeId:
    """Return the subject of the claim that a worker holds while it works."""
    return NodeId(f"{WORKERS}{name}")


def work(
    context: SiteContext, request: WorkerRequest, stopping: threading.Event, on_event: Callable[[Any], None] = ignore
) -> int:
    """Work until `stopping` is set; return the exit code. Raises `UsageError` for a wrong reach or a name in use."""
    for text in request.reach:
        network(text)
    return Worker(context, request, _opened(context.site.folder), stopping, lossy(on_event)).work()
