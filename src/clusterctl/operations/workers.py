"""The workers of a journal: which there are, what each reaches and does, and which runs wait for one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.payloads.runs import WorkerStarted
from clusterctl.fleet.reach import unreached
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time
from clusterctl.operations.runs import claim_on
from clusterctl.operations.work_queue import QueuedRun, WorkQueue
from clusterctl.operations.worker import worker_claim
from clusterctl.ports import ClaimOwner, Journal

FORGOTTEN = timedelta(days=1)
"""A worker that was lost is listed for so long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A worker. `alive`: its claim has not expired; `seen`: when it renewed that last; `run`: what it does."""

    name: str
    pool: str
    reach: tuple[str, ...]
    host: str
    pid: int
    started: datetime
    seen: datetime
    alive: bool
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRun:
    """A run that waits for a worker. `why`: no live worker can take it; empty where one can."""

    name: str
    pool: str
    priority: int
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """The workers by name, and the runs that wait, in the order in which they will be taken."""

    workers: tuple[WorkerRecord, ...]
    waiting: tuple[WaitingRun, ...]


def read(context: SiteContext) -> Workers:
    """Return the workers that work, those that were lost within a day, and the runs that wait."""
    journal = context.journal
    claimed = {owner.subject: owner for owner in journal.owners(claim_on("")) if owner.live}
    queue = WorkQueue(journal)
    queue.refresh()
    free: list[QueuedRun] = []
    doing: dict[str, str] = {}
    for run in queue.unfinished():
        if claim_on(run.name) in claimed:
            doing[claimed[claim_on(run.name)].run] = run.name
        else:
            free.append(run)
    now = current_time()
    known = (one for one in _records(journal, doing) if one.alive or now - one.seen < FORGOTTEN)
    listed = tuple(sorted(known, key=lambda one: one.name))
    return Workers(workers=listed, waiting=tuple(_waiting(run, listed) for run in free))


def _records(journal: Journal, doing: Mapping[str, str]) -> Iterator[WorkerRecord]:
    """Yield the workers that were started and not stopped. `doing`: what each of their runs does, by its id."""
    lease = timedelta(seconds=journal.lease_s)
    stopped = {event.subject: event.seq for event in journal.latest(Stream.WORKER, Kind.WORKER_STOPPED)}
    owners = {owner.subject: owner for owner in journal.owners(worker_claim(""))}
    for event in journal.latest(Stream.WORKER, Kind.WORKER_STARTED):
        owner = owners.get(worker_claim(event.subject))
        if owner is not None and event.seq > stopped.get(event.subject, 0):
            yield _record(event, owner, lease, doing.get(event.run, ""))


def _record(event: Event, owner: ClaimOwner, lease: timedelta, run: str) -> WorkerRecord:
    started = event.payload
    assert isinstance(started, WorkerStarted)  # noqa: S101 — the kind that was asked for
    return WorkerRecord(
        name=event.subject,
        pool=started.pool,
        reach=started.reach,
        host=owner.host,
        pid=owner.pid,
        started=event.at,
        seen=owner.expires - lease,
        alive=owner.live,
        run=run,
    )


def _waiting(run: QueuedRun, workers: tuple[WorkerRecord, ...]) -> WaitingRun:
    """Return a run that waits, and why no worker can take it."""
    pool = [one for one in workers if one.alive and one.pool == run.pool]
    missing = [unreached(run.needs, one.reach) for one in pool]
    why = ""
    if not pool:
        why = f"no worker of pool {run.pool} works"
    elif all(missing):
        fewest = min(missing, key=len)
        more = f" and {len(fewest) - 1} more" if len(fewest) > 1 else ""
        why = f"no worker of pool {run.pool} reaches all of its nodes; the nearest one lacks {fewest[0]}{more}"
    return WaitingRun(name=run.name, pool=run.pool, priority=run.priority, why=why)
