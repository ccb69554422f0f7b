"""Jobs from a login node: what a user without rights on the controller asks the web service, and submits himself.

Opens no journal and no site. The service chooses nodes, reads hosts and follows runs; this side submits with the
user's own identity, and only what the user has named: of the service's answer it takes the run's name and its nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.disk import named_path_explained
from clusterctl.edges.job_service import JobService
from clusterctl.edges.scheduler.slurm_jobs import SlurmJobs
from clusterctl.edges.site.secrets import private_text
from clusterctl.fleet.errors import (
    BusyError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
    PrivilegeError,
    UnreachableError,
)
from clusterctl.formats.slurm_jobs import is_one_job
from clusterctl.operations.job_inputs import (
    GIT_S,
    JobRunRequest,
    ManifestInputs,
    submissions,
    user_part_reached,
)
from clusterctl.operations.operation import Preview
from clusterctl.operations.serial import from_data, to_data
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Jobs, Submission

SUBMIT_S = 300.0
AGAIN_S = 3.0
LOST = timedelta(minutes=10)
"""So long the service may be away before following ends with an error; the run goes on."""
_RUN = re.compile(r"run-[A-Za-z0-9-]{1,64}")
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


@dataclass(frozen=True, slots=True)
class RemoteRun:
    """A run that the service has ordered: its name, and the nodes of its first attempt."""

    name: str
    nodes: tuple[str, ...]


class JobClient:
    """Jobs of one user by one service. `jobs`: the scheduler's own tools on this machine."""

    def __init__(self, service: JobService, jobs: Jobs | None = None) -> None:
        self._service = service
        self._jobs = jobs if jobs is not None else SlurmJobs()

    def runs(self) -> list[Mapping[str, Any]]:
        """Return the supervised runs."""
        found = self._service.get("jobs")
        return list(found["runs"]) if isinstance(found, Mapping) and isinstance(found.get("runs"), list) else []

    def why(self, job: str) -> Mapping[str, Any]:
        """Return why a job failed, its nodes read now; of another user's job what is recorded for all."""
        try:
            return _document(self._service.post("jobs", job, "why"))
        except PrivilegeError:
            return _document(self._service.get("jobs", job, "why"))

    def stacks(self, job: str) -> Mapping[str, Any]:
        return _document(self._service.post("jobs", job, "stacks"))

    def diff(self, first: str, second: str) -> Mapping[str, Any]:
        return _document(self._service.get("jobs", first, "diff", **{"with": second}))

    def checklist(self, job: str) -> Mapping[str, Any]:
        return _document(self._service.get("jobs", job, "checklist"))

    def run(self, job: str) -> Mapping[str, Any]:
        """Return a supervised run as the service has it; empty where the job belongs to none."""
        return _document(_document(self._service.get("jobs", job)).get("run") or {})

    def stop(self, job: str) -> Mapping[str, Any]:
        return _document(_document(self._service.post("jobs", job, "stop")).get("run"))

    def preview(self, request: JobRunRequest) -> tuple[Preview, str]:
        """Return what the run would get now, and the digest that approves it."""
        found = _document(self._service.post("jobs", body={"request": to_data(request)}))
        return from_data(Preview, found.get("preview")), str(found.get("digest", ""))

    def order(self, request: JobRunRequest, approved: str) -> RemoteRun:
        """Have the service order the run; nothing is submitted yet."""
        found = _document(self._service.post("jobs", body={"request": to_data(request), "approved": approved}))
        run = _document(found.get("run"))
        name, attempts = str(run.get("name", "")), run.get("attempts")
        nodes = attempts[0].get("nodes") if isinstance(attempts, list) and attempts else None
        if not _RUN.fullmatch(name) or not isinstance(nodes, list) or len(nodes) != request.nodes:
            raise ParseError("its answer has no run with the nodes that were asked for", where="web service")
        if not all(isinstance(node, str) and _NODE.fullmatch(node) for node in nodes):
            raise ParseError("a name of its nodes is none", where="web service")
        return RemoteRun(name=name, nodes=tuple(nodes))

    def submit(self, request: JobRunRequest, run: RemoteRun) -> str:
        """Submit all attempts of a run with `sbatch`, as the user of this command; return the first one's job.

        What was submitted already is found by its comment: an interrupted command may be repeated for the same run.
        """
        deadline = Deadline.after(SUBMIT_S)
        jobs = [self._submit(one, deadline) for one in submissions(run.name, request.ordered(""), run.nodes)]
        return jobs[0]

    def _submit(self, submission: Submission, deadline: Deadline) -> str:
        folder = Path(submission.output).parent
        with named_path_explained("the folder for the logs cannot be made", folder):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        try:
            return self._jobs.submit(submission, deadline)
        except OutcomeUnknownError as error:
            if job := self._jobs.marked(submission.comment, deadline):
                return job
            raise EdgeError(error.message, where="sbatch", remedy=error.remedy) from None

    def follow(self, run: str) -> Iterator[Mapping[str, Any]]:
        """Have the run watched, and yield what the service reports of it: `run`, `step`, until the run is over.

        A service that is started again is asked again for ten minutes: the run and its watcher go on meanwhile.
        """
        answered = CLOCK.now()
        while True:
            try:
                self._service.post("jobs", run, "watch")
                for found in self._service.events("jobs", run, "events"):
                    answered = CLOCK.now()
                    yield _document(found)
                    if _document(found.get("run")).get("state") != "running":
                        return
            except (UnreachableError, OutcomeUnknownError, BusyError):
                if CLOCK.now() - answered > LOST:
                    raise
            Deadline.after(SUBMIT_S).sleep(AGAIN_S, f"following {run}")


def client(url: str, token_file: Path, ca_file: str) -> JobClient:
    """Return the client of a service. Raises `UsageError` for a token file that others may read."""
    source = " (an administrator makes a token with clusterctl web token add NAME --jobs-of USER)"
    return JobClient(JobService(url, private_text(token_file, "--token-file", source), ca_file))


def part_of(inputs: ManifestInputs) -> Mapping[str, Any]:
    """Return the user's part of the manifest, as this machine sees it."""
    return user_part_reached(inputs, Deadline.after(GIT_S))


def is_single(script: Path) -> bool:
    """Return False for a script that asks Slurm for several jobs."""
    with named_path_explained("the script cannot be read", script):
        return is_one_job(script.read_text(encoding="utf-8", errors="replace"))


def _document(found: Any) -> Mapping[str, Any]:
    if not isinstance(found, Mapping):
        raise ParseError("its answer is no object", where="web service")
    return found
