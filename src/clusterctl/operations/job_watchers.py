"""Watchers of the runs of users: each a detached run of its own, which outlives the service that started it.

A watcher that is gone, since it was killed or the controller was started again, is started again: it goes on where the
other one was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.payloads.runs import RunOrdered
from clusterctl.jobs.supervision import JobOutcome, SupervisedRun
from clusterctl.operations import detached, runs
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.job_orders import open_runs
from clusterctl.operations.job_run import claim_of
from clusterctl.operations.job_runs import named
from clusterctl.operations.job_watch import POLL_S, WatchRequest, watch
from clusterctl.operations.operation import Control, Effect, Preview, Result
from clusterctl.operations.runs import RunRecord, RunState
from clusterctl.ports import Clock

NAME = "job watch"
_MODULE = "job_watchers"
PAUSE = timedelta(minutes=2)
"""So long after the end of a watcher, of a run that is not over, before another one is started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherRequest:
    """As `job_watch.WatchRequest`, of a detached run."""

    run: str
    poll_s: float = POLL_S


Order = Callable[[SiteContext, WatcherRequest, detached.Origin], RunRecord]
"""How a watcher is started: `detached.order`, which starts a process."""


def preview(context: SiteContext, request: WatcherRequest) -> Preview:
    """Return what the watcher does. Raises `UsageError` where there is no such run."""
    found = named(context, request.run)
    effect = Effect(node="", text=f"follow {found.id}, and start it again after failures")
    return Preview(operation=NAME, question="Follow it?", effects=(effect,))


def run(context: SiteContext, request: WatcherRequest, control: Control) -> Result:
    """Follow a run to its end."""
    found = watch(context, WatchRequest(run=request.run, poll_s=request.poll_s), control)
    return Result(operation=NAME, stopped="" if found.outcome is JobOutcome.COMPLETED else found.reason)


def require_watcher(context: SiteContext, run: str, order: Order = detached.order, clock: Clock = CLOCK) -> RunRecord:
    """Return the watcher of a run, which is started where there is none; its events have the context's user."""
    found = latest_watcher(context, run)
    if found is not None and _works(context, found, run, clock):
        return found
    return order(context, WatcherRequest(run=run), detached.Origin(command=NAME))


def latest_watcher(context: SiteContext, run: str) -> RunRecord | None:
    """Return the watcher of a run that was started last; None where none was."""
    own = [event for event in context.journal.latest(Stream.RUN, Kind.RUN_ORDERED) if _is_watcher(event, run)]
    return runs.find(context, max(own, key=lambda one: one.seq).subject) if own else None


def _is_watcher(event: Event, run: str) -> bool:
    payload = event.payload
    return isinstance(payload, RunOrdered) and payload.operation == _MODULE and payload.request.get("run") == run


def keep_watched(context: SiteContext, order: Order = detached.order, clock: Clock = CLOCK) -> tuple[str, ...]:
    """Start a watcher for each open run of a user that has none, and had none for a while; return those runs."""
    found = [one for one in open_runs(context) if _is_without_watcher(context, one, clock)]
    for one in found:
        opened = open_site(context.site.folder, Invocation(actor=one.actor, command=NAME))
        try:
            require_watcher(replace(opened, connect=context.connect), one.id, order, clock)
        finally:
            opened.journal.close()
    return tuple(one.id for one in found)


def _is_without_watcher(context: SiteContext, run: SupervisedRun, clock: Clock) -> bool:
    last = latest_watcher(context, run.id)
    if last is None:
        return True
    works = _works(context, last, run.id, clock)
    return not works and clock.now() - (last.ended or last.ordered) >= PAUSE


def _works(context: SiteContext, watcher: RunRecord, run: str, clock: Clock) -> bool:
    """Return whether the watcher is at work: it has the claim on the run. Its machine may be lost for good."""
    if watcher.state is not RunState.RUNNING or watcher.began is None or clock.now() - watcher.began < PAUSE:
        return watcher.active
    subject = claim_of(run)
    return any(owner.live and owner.subject == subject for owner in context.journal.owners(subject))
