"""What a user of the web page sees of jobs, and may ask about them.

Each reader sees of each job: nodes, class and layer of a failure, suspects, what follows. The job's owner and
administrators see the whole of it: texts from logs, stacks, script, manifest. Texts from logs may hold what a user
trains on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from clusterctl.edges.job_logs import FACTS
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import ConflictError, ParseError, PrivilegeError, UsageError
from clusterctl.fleet.event import Event, Kind, Stream
from clusterctl.fleet.payloads.jobs import JobAttributed
from clusterctl.formats.job_facts import parse_facts
from clusterctl.formats.slurm_jobs import JOB_ID
from clusterctl.jobs.downtime import RunTime, run_time
from clusterctl.jobs.supervision import SupervisedRun
from clusterctl.operations.context import Invocation, SiteContext, new_run_id, open_site
from clusterctl.operations.job_checklist import Answer, checklist
from clusterctl.operations.job_collect import owner_of
from clusterctl.operations.job_documents import run_json, why_json
from clusterctl.operations.job_files import read_progress
from clusterctl.operations.job_runs import Difference, diff, listed, named
from clusterctl.operations.job_stacks import StacksResult
from clusterctl.operations.job_stacks import run_job as take_stacks
from clusterctl.operations.job_watch import StopRequest, order_stop
from clusterctl.operations.job_why import JobWhyRequest, WhyRequest, run_job
from clusterctl.operations.job_why import run as attribute_logs
from clusterctl.operations.operation import Control
from clusterctl.operations.site_facts import state_dir

AT_ONCE = 2
"""Collections and attributions that the service does at a time: each may read all nodes of a large job."""
MOST = 200
"""Runs, and failures, in a list."""
_KEPT = 32
_LISTED = "clusterctl job list --all, and the page /jobs, list those that are known"
_OF_LOGS = frozenset({"cause", "remedy", "line", "place"})


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReader:
    """Who asks. `user`: of the scheduler, whose jobs are the reader's own; empty for none."""

    name: str
    role: UserRole
    user: str = ""

    def sees(self, owner: str) -> bool:
        """Return whether the reader sees the whole of the owner's jobs."""
        return self.role is UserRole.ADMIN or bool(owner and owner == self.user)

    def require(self, owner: str, job: str) -> None:
        """Raise `PrivilegeError` where the reader does not see the whole of the owner's jobs."""
        if not self.sees(owner):
            of = f"of {owner}" if owner else "of an unknown user"
            remedy = (
                "ask its owner, or an administrator; a token for one's own jobs: clusterctl web token add --jobs-of"
            )
            raise PrivilegeError(
                f"it is a job {of}, not of {self.user or self.name}", where=f"job {job}", remedy=remedy
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFound:
    """A job by its number, or a supervised run by its name.

    job       the number; of a run that of its last attempt, empty before it was submitted
    owner     its user in the scheduler; empty where unknown
    run       the supervised run that it belongs to
    recorded  its failure, as the journal has it, and when that was recorded
    """

    job: str
    owner: str
    run: SupervisedRun | None = None
    recorded: JobAttributed | None = None
    at: datetime | None = None

    @property
    def name(self) -> str:
        return self.job or (self.run.id if self.run else "")

    @property
    def time(self) -> RunTime | None:
        """Return the times of the run's ended attempts."""
        return run_time(self.run) if self.run is not None else None


def _job_of(name: str, run: SupervisedRun | None) -> str:
    """Return the number of the job; of a run, that of its last job, empty where none was submitted yet."""
    if JOB_ID.fullmatch(name):
        return name
    if run is None:
        raise UsageError(f"there is no job or run {name!r}", where="JOBID", remedy=_LISTED)
    return run.jobs[-1] if run.jobs else ""


class JobViews:
    """Jobs of one site, for readers with different rights. Thread-safe."""

    def __init__(self, context: SiteContext) -> None:
        self.context = context
        self._turns = threading.Semaphore(AT_ONCE)
        self._answers: dict[Path, dict[str, Any]] = {}

    def runs(self) -> tuple[SupervisedRun, ...]:
        """Return the supervised runs, the newest first."""
        return listed(self.context)[:MOST]

    def failures(self) -> tuple[JobFound, ...]:
        """Return the failed jobs that the journal has, the newest first; those of supervised runs are in their runs."""
        of_runs = {job for run in listed(self.context) for job in run.jobs}
        events = sorted(self.context.journal.latest(Stream.JOB, Kind.JOB_ATTRIBUTED), key=lambda one: -one.seq)
        alone = [event for event in events if event.subject not in of_runs]
        return tuple(_failure(event, None) for event in alone[:MOST])

    def find(self, name: str) -> JobFound:
        """Return a job by its number, or a run by its name. Raises `UsageError`."""
        run = next((one for one in listed(self.context) if one.is_named(name)), None)
        job = _job_of(name, run)
        recorded = [one for one in self.context.journal.history(Stream.JOB, job) if one.kind is Kind.JOB_ATTRIBUTED]
        if recorded:
            return _failure(recorded[-1], run)
        return JobFound(job=job, owner=run.owner if run is not None else "", run=run)

    def why(self, reader: JobReader, name: str) -> dict[str, Any]:
        """Return why a job failed: for its owner from the logs that were collected last, else as it was recorded.

        Raises `UsageError` where nothing of it is known yet.
        """
        found = self.find(name)
        folder = self._collected(found.job)
        if folder is not None and reader.sees(_owner(folder)):
            return self._attributed(folder)
        if found.recorded is None:
            remedy = "its owner can have it collected: POST to the same address"
            raise UsageError("nothing was collected of it yet", where=f"job {found.name}", remedy=remedy)
        return recorded_json(found, hidden=not reader.sees(found.owner))

    def collect(self, reader: JobReader, name: str) -> dict[str, Any]:
        """Read the job's nodes now, attribute its failure, and record it once the job is over."""
        with self._turn():
            job = self._own(reader, name)
            target = state_dir(self.context.site) / "jobs" / job / new_run_id()
            found = run_job(self.context, JobWhyRequest(job=job, target=target), Control())
        return self._keep(target, {**why_json(found), "hidden": False})

    def stacks(self, reader: JobReader, name: str) -> StacksResult:
        """Take the stacks of a running job on all its nodes."""
        with self._turn():
            job = self._own(reader, name)
            target = state_dir(self.context.site) / "jobs" / job / new_run_id()
            return take_stacks(self.context, job, Control(), target)

    def stop(self, reader: JobReader, name: str) -> SupervisedRun:
        """Order the end of an own supervised run, and cancel its job: as its watcher would. Raises `PrivilegeError`."""
        found = self.find(name).run
        if found is None:
            remedy = "its owner ends it with scancel"
            raise UsageError("no supervised run has this job", where=f"job {name}", remedy=remedy)
        reader.require(found.owner, found.id)
        with self.opened(reader, "job stop") as context:
            return order_stop(context, StopRequest(run=found.id, reason=f"stopped by {reader.name}"), Control())

    @contextmanager
    def opened(self, reader: JobReader, command: str) -> Iterator[SiteContext]:
        """Yield the site, opened as the reader: the journal has the name with each event."""
        opened = open_site(self.context.site.folder, Invocation(actor=reader.name, command=command))
        try:
            yield replace(opened, connect=self.context.connect)
        finally:
            opened.journal.close()

    def run(self, name: str) -> SupervisedRun:
        """Return a supervised run by its id or one of its jobs. Raises `UsageError`."""
        return named(self.context, name)

    def last_step(self, run: SupervisedRun) -> int | None:
        """Return the last step of the run's last attempt that its watcher has seen."""
        last = run.last
        if last is None or not last.job:
            return None
        return last.ended.last if last.ended is not None else read_progress(self.context, last.job)[1].last

    def diff(self, reader: JobReader, first: str, second: str) -> Sequence[Difference]:
        """Return what differs between the manifests of two jobs; the reader has to see both."""
        for name in (first, second):
            self._require_run(reader, name)
        return diff(self.context, first, second)

    def checklist(self, reader: JobReader, name: str) -> Sequence[Answer]:
        """Return the answers to the eight questions."""
        self._require_run(reader, name)
        return checklist(self.context, name)

    def _require_run(self, reader: JobReader, name: str) -> None:
        """Raise `UsageError` where no run has the job, `PrivilegeError` where the reader does not see all of it."""
        self.run(name)
        reader.require(self.find(name).owner, name)

    def _own(self, reader: JobReader, name: str) -> str:
        """Return the number of a job whose owner, as the scheduler has it, the reader is. Raises `PrivilegeError`."""
        job = self.find(name).job
        if not job:
            raise UsageError("it was not submitted yet", where=name, remedy="wait until it runs")
        reader.require(owner_of(self.context, job), job)
        return job

    def _collected(self, job: str) -> Path | None:
        """Return the folder that was collected of a job last; one that is still being written does not count."""
        base = state_dir(self.context.site) / "jobs" / job
        if not job or not base.is_dir():
            return None
        whole = [path for path in base.iterdir() if (path / FACTS).is_file()]
        return max(whole, key=lambda path: path.name, default=None)

    def _attributed(self, folder: Path) -> dict[str, Any]:
        if folder not in self._answers:
            with self._turn():
                self._keep(folder, {**why_json(attribute_logs(WhyRequest(logs=folder), self.context)), "hidden": False})
        return self._answers[folder]

    def _keep(self, folder: Path, answer: dict[str, Any]) -> dict[str, Any]:
        for old in list(self._answers)[: max(0, len(self._answers) - _KEPT + 1)]:
            self._answers.pop(old, None)
        self._answers[folder] = answer
        return answer

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Take a turn, or raise `ConflictError` while `AT_ONCE` other requests have theirs: no thread waits."""
        if not self._turns.acquire(blocking=False):
            remedy = "ask again in a minute"
            raise ConflictError(f"{AT_ONCE} other jobs are being read", where="web service", remedy=remedy)
        try:
            yield
        finally:
            self._turns.release()


def _owner(folder: Path) -> str:
    """Return whose job a folder has the evidence of: numbers of jobs come again after a reinstallation of Slurm."""
    try:
        return parse_facts((folder / FACTS).read_text(), where=str(folder)).user
    except (OSError, ValueError, ParseError):
        return ""


def _failure(event: Event, run: SupervisedRun | None) -> JobFound:
    payload = event.payload
    if not isinstance(payload, JobAttributed):
        raise TypeError(type(payload))
    owner = payload.user or (run.owner if run is not None else "")
    return JobFound(job=event.subject, owner=owner, run=run, recorded=payload, at=event.at)


def shown_run(run: SupervisedRun, reader: JobReader) -> dict[str, Any]:
    """Return a run as the reader sees it: `hidden` where script, folders and texts are left out."""
    found = run_json(run)
    if reader.sees(run.owner):
        return {**found, "hidden": False}
    attempts = [{**one, "cause": "", "manifest": ""} for one in found["attempts"]]
    return {**found, "reason": "", "script": "", "folder": "", "attempts": attempts, "hidden": True}


def shown_failure(found: JobFound, reader: JobReader) -> dict[str, Any] | None:
    """Return a recorded failure as the reader sees it."""
    one = found.recorded
    if one is None:
        return None
    hidden = not reader.sees(found.owner)
    return {
        "job": found.job,
        "user": found.owner,
        "recorded": found.at.isoformat() if found.at else None,
        "failure": one.failure.value,
        "layer": one.layer.value,
        "certainty": one.certainty.value,
        "persistence": one.persistence.value,
        "cause": "" if hidden else one.cause,
        "hosts": list(one.hosts),
        "ranks": list(one.ranks),
        "action": one.action,
        "hidden": hidden,
    }


def recorded_json(found: JobFound, *, hidden: bool) -> dict[str, Any]:
    """Return a recorded failure with the keys of `job why --json`; `hidden`: without what comes from logs."""
    one = found.recorded
    if one is None:
        raise ValueError("nothing was recorded")
    ranks = [*one.ranks, *[None] * len(one.hosts)]
    cause = {
        "rule": one.rule,
        "failure": one.failure.value,
        "layer": one.layer.value,
        "certainty": one.certainty.value,
        "persistence": one.persistence.value,
        "cause": one.cause,
        "action": one.action,
        "remedy": "",
        "error": one.error,
        "at": one.at.isoformat() if one.at else None,
        "step": one.iteration,
        "suspects": [{"host": host, "part": "", "rank": rank} for host, rank in zip(one.hosts, ranks, strict=False)],
        "because": [],
        "line": "",
        "place": "",
    }
    return {
        "job": found.job,
        "cause": {**cause, **dict.fromkeys(_OF_LOGS, "")} if hidden else cause,
        "others": [],
        "consequences": {},
        "unmeasured": [],
        "last_step": None,
        "hosts": None,
        "lines": None,
        "bytes_read": None,
        "earlier_failures": None,
        "recorded": True,
        "folder": None,
        "unread_nodes": {},
        "hidden": hidden,
    }
