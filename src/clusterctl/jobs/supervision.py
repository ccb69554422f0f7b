"""A supervised run as its events fold, and what it does after an attempt: by the order of events alone."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.fleet.event import Event
from clusterctl.fleet.payloads.jobs import (
    JobAttemptEnded,
    JobDrainIntended,
    JobRunEnded,
    JobRunOrdered,
    JobStopIntended,
    JobSubmitIntended,
    JobSubmitted,
)
from clusterctl.jobs.attribution import JobAction

COMPLETED = "COMPLETED"
_SURE = (Certainty.PROVEN, Certainty.LIKELY)
_OF_HOSTS = (Layer.HARDWARE, Layer.FABRIC)


class JobOutcome(enum.Enum):
    """How a supervised run ended. ASKS: it needs a decision of its user."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    ASKS = "asks"


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One submission. `intended_at`: when it was going to be submitted; `job`: empty until it was.

    `spares` are reserved meanwhile.
    """

    number: int
    nodes: tuple[str, ...]
    avoided: tuple[str, ...]
    comment: str
    intended_at: datetime
    spares: tuple[str, ...] = ()
    manifest: str = ""
    job: str = ""
    stop: JobStopIntended | None = None
    drained: tuple[str, ...] = ()
    ended: JobAttemptEnded | None = None
    ended_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class SupervisedRun:
    """`ordered` and its `attempts` in order; `outcome` None while it goes on. `stop_ordered`: by its user."""

    id: str
    ordered: JobRunOrdered
    at: datetime
    actor: str
    attempts: list[Attempt] = field(default_factory=list)
    outcome: JobOutcome | None = None
    reason: str = ""
    ended_at: datetime | None = None

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def suspects(self) -> tuple[str, ...]:
        """Return the hosts that attempts of it blame, the last first: no later attempt gets them."""
        return tuple(dict.fromkeys(host for one in reversed(self.ended) for host in one.hosts if blamed(one)))

    @property
    def ended(self) -> list[JobAttemptEnded]:
        """Return how the attempts ended, without one that goes on."""
        return [one.ended for one in self.attempts if one.ended is not None]

    @property
    def owner(self) -> str:
        """Return whose run it is: the user who submits its jobs, else the one who ordered it."""
        return self.ordered.submitter or self.actor

    def is_named(self, name: str) -> bool:
        """Return whether this is the run's id, or that of one of its jobs."""
        return name == self.id or name in self.jobs

    @property
    def jobs(self) -> tuple[str, ...]:
        return tuple(one.job for one in self.attempts if one.job)


def blamed(ended: JobAttemptEnded) -> bool:
    """Return whether an attempt's failure is to blame on its hosts: they are left out of the next attempts."""
    return ended.action == JobAction.RESTART_WITHOUT.value


def ordered_by_user(stop: JobStopIntended) -> bool:
    """Return whether a user ended the run, and not its watcher an attempt."""
    return stop.failure is Failure.ENDED and not stop.unavailable


def fold(events: Iterable[Event]) -> SupervisedRun | None:
    """Return the run; None where no event orders one."""
    run: SupervisedRun | None = None
    for event in events:
        match event.payload:
            case JobRunOrdered() as ordered:
                run = SupervisedRun(id=event.subject, ordered=ordered, at=event.at, actor=event.actor)
            case JobSubmitIntended() as intent if run is not None:
                if not run.attempts or run.attempts[-1].number < intent.attempt:
                    run.attempts.append(_attempt(event, intent))
            case payload if run is not None:
                _take(run, payload, event.at)
    return run


def _attempt(event: Event, intent: JobSubmitIntended) -> Attempt:
    return Attempt(
        number=intent.attempt,
        nodes=intent.nodes,
        avoided=intent.avoided,
        comment=intent.comment,
        intended_at=event.at,
        spares=intent.spares,
        manifest=event.evidence[0] if event.evidence else "",
    )


def _take(run: SupervisedRun, payload: object, at: datetime) -> None:
    last = run.last
    match payload:
        case JobSubmitted() if last is not None and not last.job:
            last.job = payload.job
        case JobStopIntended() if last is not None and (last.stop is None or ordered_by_user(payload)):
            last.stop = payload
        case JobDrainIntended() if last is not None:
            last.drained = payload.hosts
        case JobAttemptEnded() if last is not None and last.ended is None:
            last.ended, last.ended_at = payload, at
        case JobRunEnded():
            run.outcome, run.reason, run.ended_at = JobOutcome(payload.outcome), payload.reason, at
        case _:
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """What a run does after an attempt: `outcome` ends it; else it starts again. Before that, hosts are taken out.

    `quarantine`: as the run's order has it; `proven`: hosts whose hardware is proven to blame by what no user writes.
    """

    outcome: JobOutcome | None
    reason: str
    drain: tuple[str, ...] = ()
    quarantine: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()


def after(run: SupervisedRun) -> Next:
    """Return what follows from the last attempt, which has ended.

    1. It completed, or its user ordered its end: the run is over.
    2. The application is to blame, the failure is the same at the same step twice, or the attribution asks to stop or
       to wait for a repair: the run asks.
    3. The attempts are used up, or the last three made no progress: the run asks.
    4. Otherwise it starts again, without hosts that are to blame; those are drained where policy and evidence allow it.
    """
    last = run.last
    ended = last.ended if last is not None else None
    if last is None or ended is None:
        raise ValueError("the last attempt has not ended")
    if ended.state == COMPLETED:
        return Next(outcome=JobOutcome.COMPLETED, reason=f"job {ended.job} completed")
    if last.stop is not None and ordered_by_user(last.stop):
        return Next(outcome=JobOutcome.STOPPED, reason=last.stop.reason)
    asks = _asks(run, ended)
    drain = _to_drain(run, ended)
    proven = ended.layer is Layer.HARDWARE and ended.certainty is Certainty.PROVEN
    quarantine = drain if run.ordered.policy.quarantine and proven else ()
    by_site = drain if proven and ended.from_host else ()
    outcome, reason = (JobOutcome.ASKS, asks) if asks else (None, ended.cause or ended.state)
    return Next(outcome=outcome, reason=reason, drain=drain, quarantine=quarantine, proven=by_site)


def _asks(run: SupervisedRun, ended: JobAttemptEnded) -> str:
    """Return why no further attempt is made; empty where one is."""
    if ended.action in (JobAction.STOP.value, JobAction.WAIT.value, JobAction.NOTHING.value):
        return f"{ended.action}: {ended.cause}"
    alike = _failed_alike(run, ended)
    if alike is not None:
        return f"attempts {alike.attempt} and {ended.attempt} failed at the same step, {ended.last}"
    if run.ordered.policy.retries < ended.attempt:
        failed = (
            f"{ended.attempt} attempts failed, the last one by" if ended.attempt > 1 else "its only attempt failed by"
        )
        return f"{failed}: {ended.cause or ended.state}"
    recent = run.ended[-3:]
    if len(recent) == 3 and all(one.first is None for one in recent):
        return "three attempts in a row made no step"
    return ""


def _failed_alike(run: SupervisedRun, ended: JobAttemptEnded) -> JobAttemptEnded | None:
    """Return the last earlier attempt that failed in the same way at the same step; None where hosts are to blame."""
    if ended.last is None or ended.layer in _OF_HOSTS:
        return None
    same = (ended.failure, ended.last, ended.layer)
    return next((one for one in reversed(run.ended[:-1]) if (one.failure, one.last, one.layer) == same), None)


def _to_drain(run: SupervisedRun, ended: JobAttemptEnded) -> tuple[str, ...]:
    """Return the hosts to drain: hardware or fabric, proven or likely, and no more than two at a time.

    A run that a user submits drains none by what the user could have written: lines of the job's own log.
    """
    sure = blamed(ended) and ended.layer in _OF_HOSTS and ended.certainty in _SURE
    sure = sure and (ended.from_host or not run.ordered.submitter)
    return ended.hosts if run.ordered.policy.drain and sure and len(ended.hosts) <= 2 else ()
