"""Jobs of the site's UFM: listed, or followed to their end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import BusyError, UnreachableError
from clusterctl.fleet.fabric.manager_jobs import JobStatus, ManagerJob
from clusterctl.operations.operation import Control, Event
from clusterctl.ports import Deadline, JobReader
from clusterctl.ports.deadline import SYSTEM_TIMER, Timer

EVERY_S = 5.0
"""Seconds between two looks at jobs that run."""
READ_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsRequest:
    """`ids`: these jobs; none: all that UFM has. `wait_s`: seconds in which they must end; 0: one look."""

    ids: tuple[str, ...] = ()
    wait_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsResult:
    """`parts`: of each job that did not end well, its parts that did not either. `unread`: why the last look failed."""

    jobs: tuple[ManagerJob, ...]
    parts: Mapping[str, tuple[ManagerJob, ...]] = field(default_factory=dict)
    unread: str = ""

    @property
    def exit_code(self) -> int:
        """0: all jobs are completed, without warnings; 1: some are not."""
        return 0 if not self.unread and all(job.status is JobStatus.COMPLETED for job in self.jobs) else 1


def run(reader: JobReader, request: JobsRequest, control: Control, timer: Timer = SYSTEM_TIMER) -> JobsResult:
    """Return the jobs, once they have ended where that is asked for. A UFM that is away meanwhile is asked again.

    Raise `EdgeError` where the first look fails, and where UFM does not have a job.
    """
    deadline = Deadline.after(max(request.wait_s, READ_S), control.cancelled, timer)
    jobs, unread = _look(reader, request, deadline), ""
    reported: dict[str, str] = {}
    while request.wait_s and (unread or not all(job.status.is_over for job in jobs)) and deadline.remaining > EVERY_S:
        for job in jobs:
            if reported.get(job.id) != (text := _progress(job)):
                reported[job.id] = text
                control.on_event(Event(text=f"job {job.id}: {text}"))
        deadline.sleep(EVERY_S, "waiting for jobs of UFM")
        try:
            jobs, unread = _look(reader, request, deadline), ""
        except (UnreachableError, BusyError) as error:
            unread = str(error)
    return JobsResult(jobs=jobs, parts=_parts(reader, jobs, deadline) if not unread else {}, unread=unread)


def _look(reader: JobReader, request: JobsRequest, deadline: Deadline) -> tuple[ManagerJob, ...]:
    if not request.ids:
        return reader.jobs(deadline.within(READ_S)).value
    return tuple(reader.job(id_, deadline.within(READ_S)).value for id_ in dict.fromkeys(request.ids))


def _progress(job: ManagerJob) -> str:
    return job.status_text if job.progress is None else f"{job.status_text}, {job.progress} %"


def _parts(reader: JobReader, jobs: tuple[ManagerJob, ...], deadline: Deadline) -> dict[str, tuple[ManagerJob, ...]]:
    """Return what did not end well of the jobs that did not: one part for each switch."""
    bad = [job for job in jobs if job.status in (JobStatus.ERRORS, JobStatus.WARNINGS)]
    read = {job.id: reader.jobs(deadline.within(READ_S), parent=job.id).value for job in bad}
    return {id_: tuple(part for part in parts if part.status is not JobStatus.COMPLETED) for id_, parts in read.items()}
