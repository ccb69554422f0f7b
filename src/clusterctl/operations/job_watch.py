"""A supervised run followed to its end: progress, hangs, slow steps, failures, and the next attempt.

Each turn begins with the journal: what it holds decides what is done next, and each act is intended there before. A
watcher that was killed is started again and goes on; nothing is submitted twice. One watcher acts on a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.fleet.errors import (
    CancelledError,
    ClaimLostError,
    ClusterctlError,
    EdgeError,
    EnvironmentBrokenError,
    OutcomeUnknownError,
    ParseError,
    UsageError,
)
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.node import Stage
from clusterctl.fleet.payloads.jobs import (
    JobAttemptEnded,
    JobAttributed,
    JobDrainIntended,
    JobRunEnded,
    JobRunOrdered,
    JobStopIntended,
    JobSubmitted,
)
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.formats.job_tail import EventsPiece, Tail
from clusterctl.formats.tensorboard import EventStep, read_events
from clusterctl.jobs.attribution import Attribution, JobAction
from clusterctl.jobs.progress import JobProgress, Reader, Reading, event_readings, events_path, reader
from clusterctl.jobs.supervision import COMPLETED, Attempt, JobOutcome, SupervisedRun, after
from clusterctl.jobs.watching import WatchVerdict, judge
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext, new_run_id
from clusterctl.operations.decisions import Decision, DecisionRequest
from clusterctl.operations.decisions import run as decide
from clusterctl.operations.job_collect import CollectRequest, collect_with, require_jobs
from clusterctl.operations.job_files import read_progress, write_progress
from clusterctl.operations.job_run import BY_USER, alone, close_run, hold_spares, submit, submit_next
from clusterctl.operations.job_runs import named
from clusterctl.operations.job_start import closed_nodes, described, shortage, waits_for_nodes
from clusterctl.operations.job_suspects import FollowUp, revalidate
from clusterctl.operations.job_suspects import decide as decide_follow_up
from clusterctl.operations.job_why import WhyRequest
from clusterctl.operations.job_why import run as attribute_logs
from clusterctl.operations.operation import Control, Event, current_time
from clusterctl.operations.site_facts import require_scheduler
from clusterctl.ports import Claim, Clock, Deadline
from clusterctl.ports.deadline import SYSTEM_TIMER, Timer
from clusterctl.ports.scheduler import PREFIX, Scheduler, Use
from clusterctl.steps.job_tail import MOST_BYTES, TailRequest

SCHEDULER_S = 300.0
MOST_REASON = 300
POLL_S = 10.0
UNWATCHED = timedelta(minutes=2)
"""Two looks that are further apart than a poll and this leave a time in which the job was not watched."""
MOST_PIECES = 64
"""Pieces of a log that are read at one look."""
COMPLETING_S = 60.0
"""So long a node may need after the job's end before it is idle, and can be drained."""
REMEMBERED = timedelta(seconds=240)
"""Slurm keeps a job for 300 s (MinJobAge) after its end: so long a submission without an answer can be looked up."""
RENEWED = timedelta(minutes=30)
"""How often the reservation of spares is renewed, which ends by itself after `ports.jobs.RESERVED_MIN`."""
LOST = timedelta(minutes=10)
"""So long the scheduler may not answer before the watcher gives up; the run itself goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchRequest:
    """`run`: the run's id, or that of one of its jobs; `poll_s`: seconds between two looks."""

    run: str
    poll_s: float = POLL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    """`run` as of `WatchRequest`; `reason` is kept in the journal."""

    run: str
    reason: str


def watch(context: SiteContext, request: WatchRequest, control: Control) -> SupervisedRun:
    """Follow a run until it is over. Raises `UsageError` where another watcher does."""
    found = named(context, request.run)
    with alone(context, found.id, control) as claim, closing(context.adapters()) as adapters:
        return Watcher(context, adapters, Watched(run=found.id, claim=claim, poll_s=request.poll_s), control).follow()


def stop(context: SiteContext, request: StopRequest, control: Control) -> SupervisedRun:
    """Order the end of a run, cancel its job, and see it end; where another watcher follows it, that one does."""
    found = order_stop(context, request, control)
    if found.outcome is not None:
        return found
    try:
        return watch(context, WatchRequest(run=found.id, poll_s=1.0), control)
    except UsageError:
        return named(context, found.id)  # its watcher sees the end


def order_stop(context: SiteContext, request: StopRequest, control: Control) -> SupervisedRun:
    """Order the end of a run, and cancel its job; the next look of its watcher records the end.

    Raises `UsageError` where the run is over.
    """
    found = named(context, request.run)
    last = found.last
    if found.outcome is not None:
        raise UsageError(f"it is over: {found.reason}", where=found.id, remedy="nothing is to be done")
    if last is None or last.ended is not None or not last.job:
        ended = JobRunEnded(outcome=JobOutcome.STOPPED.value, reason=request.reason)
        context.journal.append([NewEvent(Stream.JOB, found.id, ended)])
        with closing(context.adapters()) as adapters:
            close_run(context, adapters, found, Deadline.after(SCHEDULER_S, control.cancelled))
        return named(context, found.id)
    intent = JobStopIntended(
        attempt=last.number, job=last.job, failure=Failure.ENDED, reason=request.reason, detected=current_time()
    )
    context.journal.append([NewEvent(Stream.JOB, found.id, intent)])
    with closing(context.adapters()) as adapters:
        require_jobs(context, adapters).cancel(last.job, Deadline.after(SCHEDULER_S, control.cancelled))
    return named(context, found.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A run, the claim on it that each event is written under, and the seconds between two looks."""

    run: str
    claim: Claim
    poll_s: float


class Watcher:
    """Acts on one run, a turn at a time."""

    def __init__(
        self,
        context: SiteContext,
        adapters: Adapters,
        watched: Watched,
        control: Control,
        *,
        clock: Clock = CLOCK,
        timer: Timer = SYSTEM_TIMER,
    ) -> None:
        self._context = context
        self._adapters = adapters
        self._run = watched.run
        self._claim = watched.claim
        self._poll_s = watched.poll_s
        self._control = control
        self._clock = clock
        self._timer = timer
        self._jobs = require_jobs(context, adapters)
        self._tail = StepFactory(context, adapters, control.cancelled, read_only=True).job_tail()
        self._reported = ""
        self._held: tuple[int, datetime] | None = None
        self._closed: frozenset[str] = frozenset()

    def follow(self) -> SupervisedRun:
        """Take turns until the run is over. Where the scheduler is silent, a turn is taken again for a while."""
        silent: datetime | None = None
        while True:
            found = named(self._context, self._run)
            if found.outcome is not None:
                close_run(self._context, self._adapters, found, self._soon())
                return found
            try:
                self._turn(found)
            except (EdgeError, EnvironmentBrokenError) as error:
                silent = silent or self._clock.now()
                if self._clock.now() - silent > LOST:
                    raise
                self._report(f"the scheduler does not answer: {error.message}")
                self._wait(self._poll_s)
            else:
                silent = None

    def _turn(self, found: SupervisedRun) -> None:
        self._hold_spares(found)
        last = found.last
        if last is None:
            self._next(found)
        elif last.ended is not None:
            self._go_on(found, last)
        elif not last.job:
            self._submit(found, last)
        else:
            self._attempt(found, last)

    def _hold_spares(self, found: SupervisedRun) -> None:
        """Renew the reservation of the spares from time to time; without this, other jobs get them after a while."""
        now = self._clock.now()
        attempt = found.last.number if found.last is not None else 0
        if self._held is not None and self._held[0] == attempt and now - self._held[1] < RENEWED:
            return
        if trouble := hold_spares(self._context, self._adapters, found, self._soon()):
            self._report(trouble)
        self._held = (attempt, now)

    def _submit(self, found: SupervisedRun, attempt: Attempt) -> None:
        """Submit an intended attempt, unless the scheduler has it, or had it and has forgotten it."""
        user = found.ordered.submitter
        job = self._jobs.marked(attempt.comment, self._soon(), user)
        if user:
            self._take_over(attempt, job)
        elif job:
            self._write(JobSubmitted(attempt=attempt.number, job=job))
        elif self._clock.now() - attempt.intended_at > REMEMBERED:
            reason = f"it is unknown whether attempt {attempt.number} was submitted: the scheduler forgets after 300 s"
            self._write(JobRunEnded(outcome=JobOutcome.ASKS.value, reason=reason))
        else:
            self._send(found)

    def _take_over(self, attempt: Attempt, job: str) -> None:
        """Record the job that the user has submitted for an attempt; a held one gets its nodes first.

        A first attempt that was not submitted in time, and a further one without a held job, end the run.
        """
        if job:
            if self._jobs.job(job, self._soon()).state == "PENDING" and attempt.number > 1:
                self._jobs.assign(job, attempt.nodes, self._soon())
            self._write(JobSubmitted(attempt=attempt.number, job=job))
        elif attempt.number > 1:
            reason = f"the user has no held job for attempt {attempt.number}"
            self._write(JobRunEnded(outcome=JobOutcome.ASKS.value, reason=reason))
        elif self._clock.now() - attempt.intended_at > BY_USER:
            reason = f"the scheduler had no job of it within {BY_USER.total_seconds() / 60:.0f} minutes of the order"
            self._write(JobRunEnded(outcome=JobOutcome.ASKS.value, reason=reason))
        else:
            self._report("waiting until the user's command has submitted the job")
            self._wait(self._poll_s)

    def _send(self, found: SupervisedRun) -> None:
        """Submit under the claim: another watcher that has it now would do the same."""
        lost = self._context.journal.renew([self._claim])
        if lost:
            raise ClaimLostError(next(iter(lost.values())), where=self._run, remedy="let that watcher go on")
        try:
            submit(self._context, self._adapters, found, self._claim, self._soon())
        except OutcomeUnknownError:
            raise
        except EdgeError as error:
            self._write(JobRunEnded(outcome=JobOutcome.ASKS.value, reason=error.message))

    def _attempt(self, found: SupervisedRun, attempt: Attempt) -> None:
        """Follow a submitted attempt until it is over, and record what became of it."""
        offset, progress = read_progress(self._context, attempt.job)
        readers = tuple(reader(name) for name in found.ordered.readers)
        log = _Log(offset=offset, progress=progress, readers=readers, gap=timedelta(seconds=self._poll_s) + UNWATCHED)
        self._report(f"attempt {attempt.number} is job {attempt.job} on {len(attempt.nodes)} nodes")
        while True:
            job = self._look(attempt)
            self._read(found, attempt, job, log)
            if job.over or job.state == "UNKNOWN":
                self._ended(attempt, job, log.progress)
                return
            stop = attempt.stop or named(self._context, self._run).attempts[-1].stop
            if stop is not None:
                self._jobs.cancel(attempt.job, self._soon())
            elif (verdict := self._judged(found, job, log)) is not None:
                self._abort(attempt, verdict)
                continue
            elif self._waits_in_vain(attempt, job):
                continue
            self._hold_spares(found)
            self._wait(self._poll_s)

    def _look(self, attempt: Attempt) -> ScheduledJob:
        """Return the job. Where the scheduler is silent, ask again for a while; one that forgot it is UNKNOWN."""
        began = self._clock.now()
        while True:
            try:
                return self._jobs.job(attempt.job, self._soon())
            except UsageError:
                return ScheduledJob(job=attempt.job, state="UNKNOWN")
            except (EdgeError, EnvironmentBrokenError) as error:
                if self._clock.now() - began > LOST:
                    raise
                self._report(f"the scheduler does not answer: {error.message}")
                self._wait(self._poll_s)

    def _read(self, found: SupervisedRun, attempt: Attempt, job: ScheduledJob, log: _Log) -> None:
        if job.started is None or not job.stdout:
            return
        before = log.progress.steps
        log.begin(self._clock.now())
        for _ in range(MOST_PIECES):
            tail = self._tail.read(job, attempt.nodes, log.request(found.ordered), self._soon())
            if tail.error:
                log.blind = True
                self._report(f"its log is not read: {tail.error}")
                break
            if log.blind or job.state == "SUSPENDED":
                log.progress.resumed(self._clock.now())  # nothing was seen, or nothing ran: that is no silence
            log.blind = False
            if trouble := log.take(tail, self._clock.now()):
                self._report(f"its event file is not read: {trouble}")
            if len(tail.content) < MOST_BYTES and len(tail.events.content) < MOST_BYTES:
                break
        log.end(self._clock.now(), job)
        write_progress(self._context, attempt.job, log.offset, log.progress)
        if log.progress.steps > before:
            self._control.on_event(Event(text=f"step {log.progress.last}"))

    def _judged(self, found: SupervisedRun, job: ScheduledJob, log: _Log) -> WatchVerdict | None:
        if job.started is None or job.state != "RUNNING" or log.blind:
            return None
        return judge(log.progress, found.ordered.policy, job.started, self._clock.now())

    def _waits_in_vain(self, attempt: Attempt, job: ScheduledJob) -> bool:
        """Order the end of an attempt that waits for a closed node, by two looks in a row; return whether it was."""
        before, self._closed = self._closed, frozenset()
        if not waits_for_nodes(job):
            return False
        seen = require_scheduler(self._context.site, self._adapters.scheduler).look(self._soon()).value
        closed = closed_nodes(attempt.nodes, seen)
        lasting = tuple(name for name in closed if name in before)
        if not closed:
            return False
        reason = f"it cannot begin: {described(closed, seen)}"[:MOST_REASON]
        self._report(reason)
        if not lasting:
            self._closed = frozenset(closed)
            return False
        self._write(
            JobStopIntended(
                attempt=attempt.number,
                job=attempt.job,
                failure=Failure.ENDED,
                reason=reason,
                detected=self._clock.now(),
                unavailable=lasting,
            )
        )
        return True

    def _abort(self, attempt: Attempt, verdict: WatchVerdict) -> None:
        """Collect the evidence while the ranks still run, attribute it, then order the job's end."""
        self._report(f"{verdict.failure.value}: {verdict.text}")
        detected = self._clock.now()
        self._attributed(attempt)
        self._write(
            JobStopIntended(
                attempt=attempt.number,
                job=attempt.job,
                failure=verdict.failure,
                reason=verdict.text,
                detected=detected,
            )
        )

    def _attributed(self, attempt: Attempt) -> Attribution | None:
        """Collect and attribute; None where the evidence could not be collected at all."""
        context = replace(self._context, run=new_run_id())
        try:
            folder = collect_with(context, self._adapters, CollectRequest(job=attempt.job), self._control).folder
            result = attribute_logs(WhyRequest(logs=folder, record=True), context)
        except CancelledError:
            raise
        except ClusterctlError as error:
            self._report(f"its evidence was not collected: {error.message}")
            return None
        cause = result.attribution.cause
        hosts = ", ".join(dict.fromkeys(one.host for one in cause.suspects if one.host))
        self._report(f"{cause.layer.value}, {cause.certainty.value}: {cause.cause}{f' ({hosts})' if hosts else ''}")
        return result.attribution

    def _ended(self, attempt: Attempt, job: ScheduledJob, progress: JobProgress) -> None:
        """Record the end of an attempt. What was attributed while it hung is read from the journal."""
        stop = attempt.stop or named(self._context, self._run).attempts[-1].stop
        detected = stop.detected if stop is not None else self._clock.now()
        ended = self._ended_payload(attempt, job, progress, detected)
        if stop is not None and stop.unavailable:
            ended = _not_begun(ended, stop)
        elif stop is not None and stop.failure is not Failure.ENDED:
            ended = self._kept_attribution(replace(ended, failure=stop.failure, cause=stop.reason))
        elif stop is None and job.state not in (COMPLETED, "UNKNOWN"):
            ended = _with(ended, self._attributed(attempt))
        elif job.state == "UNKNOWN":
            ended = replace(
                ended, action=JobAction.INVESTIGATE.value, cause="the scheduler no longer knows how the job ended"
            )
        self._write(ended)
        self._report(f"attempt {attempt.number} ended: {job.state}")

    def _kept_attribution(self, ended: JobAttemptEnded) -> JobAttemptEnded:
        """Return the end with the last attribution of the job that the journal has."""
        found = [event.payload for event in self._context.journal.history(Stream.JOB, ended.job)]
        kept_ones = [one for one in found if isinstance(one, JobAttributed)]
        if not kept_ones:
            return replace(ended, action=JobAction.INVESTIGATE.value)
        one = kept_ones[-1]
        return replace(
            ended,
            layer=one.layer,
            certainty=one.certainty,
            hosts=one.hosts,
            action=one.action,
            from_host=one.from_host,
        )

    def _ended_payload(
        self, attempt: Attempt, job: ScheduledJob, progress: JobProgress, detected: datetime
    ) -> JobAttemptEnded:
        states = {state.name: state for state in self._context.states(attempt.nodes)}
        gpus = sum(len(one.inventory.gpus or ()) for one in states.values() if one.inventory is not None)
        return JobAttemptEnded(
            attempt=attempt.number,
            job=attempt.job,
            state=job.state,
            nodes=len(attempt.nodes),
            gpus=gpus,
            launched=job.started,
            stopped=job.ended,
            detected=detected,
            first=progress.first,
            first_at=progress.first_at,
            last=progress.last,
            last_at=progress.last_at,
            saved=progress.saved,
            saved_at=progress.saved_at,
            saving_s=progress.saving_s,
            saves=progress.saves,
        )

    def _go_on(self, found: SupervisedRun, attempt: Attempt) -> None:
        """Drain suspects, then end the run or begin the next attempt after its pause."""
        following = after(found)
        if following.drain:
            reason = f"{PREFIX}job:{found.id}"
            if not attempt.drained:
                self._write(JobDrainIntended(attempt=attempt.number, hosts=following.drain, reason=reason))
            self._drain(following.drain, reason)
            self._quarantine(following.quarantine, attempt)
            for host in following.proven:
                self._follow_up(host, attempt, reason)
        if following.outcome is not None:
            self._write(JobRunEnded(outcome=following.outcome.value, reason=following.reason))
            return
        pause = timedelta(seconds=found.ordered.policy.pause(attempt.number))
        left = (attempt.ended_at or self._clock.now()) + pause - self._clock.now()
        if left > timedelta():
            self._report(f"the next attempt begins in {left.total_seconds():.0f} s")
            self._wait(left.total_seconds())
        if named(self._context, self._run).outcome is None:
            self._next(found)

    def _drain(self, hosts: tuple[str, ...], reason: str) -> None:
        """Keep jobs off suspects; a host that cannot be had is reported, and left out of this run all the same."""
        scheduler = self._adapters.scheduler
        if scheduler is None:
            return
        try:
            until = self._clock.now() + timedelta(seconds=COMPLETING_S)
            while self._clock.now() < until and _busy(scheduler, hosts, self._soon()):
                self._wait(min(self._poll_s, 5.0))
            refused = scheduler.take(hosts, reason, self._soon())
        except CancelledError:
            raise
        except ClusterctlError as error:
            refused = dict.fromkeys(hosts, error.message)
        for name in hosts:
            self._report(
                f"{name} is not drained: {refused[name]}" if name in refused else f"{name} is drained: {reason}"
            )

    def _follow_up(self, host: str, attempt: Attempt, drain: str) -> None:
        """Do with a drained host what the site has decided; where that fails, the host stays drained."""
        decided = decide_follow_up(self._context, host)
        if decided.because:
            self._report(f"{host}: {decided.follow_up.value}, since {decided.because}")
        if decided.follow_up is FollowUp.QUARANTINE:
            self._quarantine((host,), attempt)
        elif decided.follow_up is FollowUp.REVALIDATE:
            cause = attempt.ended.cause if attempt.ended is not None else ""
            try:
                ordered = revalidate(
                    self._context, host, f"job {attempt.job} of {self._run}: {cause}"[:MOST_REASON], drain
                )
            except CancelledError:
                raise
            except ClusterctlError as error:
                self._report(f"{host} is not revalidated: {error.message}")
            else:
                self._report(f"{host} is revalidated by the run {ordered.name}")

    def _quarantine(self, hosts: tuple[str, ...], attempt: Attempt) -> None:
        """Quarantine suspects that are not; a host that may not be is reported, and stays drained all the same."""
        cause = attempt.ended.cause if attempt.ended is not None else ""
        for name in hosts:
            if any(node.stage is Stage.QUARANTINED for node in self._context.states([name])):
                continue
            reason = f"job {attempt.job} of {self._run}: {cause}"[:MOST_REASON]
            request = DecisionRequest(decision=Decision.QUARANTINE, nodes=(name,), reason=reason)
            try:
                decide(self._context, request, Control(cancelled=self._control.cancelled))
            except CancelledError:
                raise
            except ClusterctlError as error:
                self._report(f"{name} is not quarantined: {error.message}")
            else:
                self._report(f"{name} is quarantined: {cause}")

    def _next(self, found: SupervisedRun) -> None:
        """Order the next attempt as soon as enough healthy nodes are free; a user's stop ends the wait.

        After an attempt that waited in vain for nodes, too few nodes on which work can begin end it, too.
        """
        stop = found.last.stop if found.last is not None else None
        while not submit_next(self._context, self._adapters, found, self._claim, self._soon()):
            if stop is not None and stop.unavailable:
                lacking = shortage(self._context, self._adapters, found, self._soon())
                if lacking:
                    self._write(JobRunEnded(outcome=JobOutcome.ASKS.value, reason=lacking))
                    return
            self._report(f"waiting until {found.ordered.nodes} gold nodes are idle")
            self._hold_spares(found)
            self._wait(self._poll_s)
            if named(self._context, self._run).outcome is not None:
                return

    def _write(self, payload: Payload) -> None:
        self._context.journal.append([NewEvent(Stream.JOB, self._run, payload)], claim=self._claim)

    def _report(self, text: str) -> None:
        if text != self._reported:
            self._reported = text
            self._control.on_event(Event(text=text))

    def _soon(self) -> Deadline:
        return Deadline.after(SCHEDULER_S, self._control.cancelled)

    def _wait(self, seconds: float) -> None:
        deadline = Deadline.after(seconds + SCHEDULER_S, self._control.cancelled, self._timer)
        deadline.sleep(seconds, f"watching {self._run}: clusterctl job watch {self._run} goes on")


@dataclass(slots=True, kw_only=True)
class _Log:
    """How far an attempt's log is read, and what it has shown.

    gap    after so long without a look, nothing is learned from the times of its steps
    blind  it could not be read at the last look
    beat   time of the heartbeat file at the last look: one that stands still is no sign of progress
    event  the last step of TensorBoard's event files
    """

    offset: int
    progress: JobProgress
    readers: tuple[Reader, ...]
    gap: timedelta
    looked_at: datetime | None = None
    watched: bool = False
    readings: list[Reading] = field(default_factory=list)
    blind: bool = False
    beat: datetime | None = None
    events_file: str = ""
    events_offset: int = 0
    event: EventStep | None = None

    def request(self, ordered: JobRunOrdered) -> TailRequest:
        """Return what is read at the next look."""
        return TailRequest(
            offset=self.offset,
            heartbeat=ordered.heartbeat,
            events=events_path(ordered.readers),
            events_file=self.events_file,
            events_offset=self.events_offset,
        )

    def begin(self, now: datetime) -> None:
        """Begin a look: what it brings is timed only where the last one was a short while ago, and saw the log."""
        self.watched = not self.blind and self.looked_at is not None and now - self.looked_at <= self.gap
        self.readings = []

    def take(self, tail: Tail, now: datetime) -> str:
        """Take in what was added to the log, the event file and the heartbeat; return why the events were not read."""
        self._take_lines(tail.content, tail.offset)
        if tail.heartbeat is not None and tail.heartbeat != self.beat:
            self.progress.heartbeat(min(tail.heartbeat, now))
            self.beat = tail.heartbeat
        return self._take_events(tail.events)

    def end(self, now: datetime, job: ScheduledJob) -> None:
        """End a look: all that it brought was reported since the last one, and before the job's end."""
        at = min(now, job.ended) if job.over and job.ended is not None else now
        at = max(at, self.progress.active_at or at)
        self.progress.add_all(self.readings, at, watched=self.watched, since=job.started)
        self.readings = []
        if not self.blind:
            self.looked_at = now

    def _take_events(self, piece: EventsPiece) -> str:
        """Take in what was added to an event file; return why it could not be read, empty where it could."""
        if piece.error or not piece.content:
            return piece.error
        try:
            found, used = read_events(piece.content)
        except ParseError as error:
            return str(error)
        self.events_file, self.events_offset = piece.file, piece.start + used
        last = -1 if self.progress.last is None else self.progress.last
        self.readings += [one for one in event_readings(found, self.event) if one.step is not None and one.step > last]
        self.event = max((*found, *([self.event] if self.event else [])), key=lambda one: one.step, default=None)
        return ""

    def _take_lines(self, content: bytes, offset: int) -> None:
        """Take in what was added; `offset` is that of the last whole line, so that no line is read in two halves."""
        whole, _, rest = content.replace(b"\r", b"\n").rpartition(b"\n")
        if len(rest) > (1 << 20):
            whole, rest = content, b""
        self.offset = offset - len(rest)
        lines = (raw.decode(errors="replace") for raw in whole.split(b"\n"))
        seen = (next((reading for read in self.readers if (reading := read(line)) is not None), None) for line in lines)
        self.readings += [one for one in seen if one is not None]


def _busy(scheduler: Scheduler, hosts: Sequence[str], deadline: Deadline) -> bool:
    """Return whether a job, or the end of one, still occupies a host."""
    seen = scheduler.look(deadline).value
    return any(name in seen and seen[name].use is Use.BUSY for name in hosts)


def _not_begun(ended: JobAttemptEnded, stop: JobStopIntended) -> JobAttemptEnded:
    """Return the end of an attempt that waited in vain for nodes: those are not to blame, and are not idle either."""
    return replace(
        ended,
        layer=Layer.SCHEDULER,
        certainty=Certainty.PROVEN,
        hosts=stop.unavailable,
        action=JobAction.RESTART.value,
        cause=stop.reason,
    )


def _with(ended: JobAttemptEnded, found: Attribution | None) -> JobAttemptEnded:
    """Return the end with what its failure is attributed to."""
    if found is None:
        return replace(
            ended, failure=Failure.CRASH, action=JobAction.INVESTIGATE.value, cause="no evidence could be collected"
        )
    cause = found.cause
    return replace(
        ended,
        failure=cause.failure if cause.failure is not Failure.ENDED or ended.state == "CANCELLED" else Failure.CRASH,
        layer=cause.layer,
        certainty=cause.certainty,
        hosts=tuple(dict.fromkeys(one.host for one in cause.suspects if one.host))[:64],
        action=cause.action.value,
        cause=cause.cause,
        from_host=cause.from_host,
    )
