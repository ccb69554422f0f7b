"""Jobs of Slurm, through its own `scontrol`, `sacct`, `squeue`, `sbatch` and `scancel`.

scontrol forgets a job MinJobAge seconds (300 by default) after its end; later only sacct knows it, where accounting is
set up. A submission is found again by its comment, which no other user knows before it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.edges.processes import ProcessResult, Surroundings, run
from clusterctl.edges.scheduler.slurm import ENVIRONMENT, LACKING, REMEDY, SECONDS, on_slurm_host
from clusterctl.fleet.errors import (
    EdgeError,
    EnvironmentBrokenError,
    OutcomeUnknownError,
    ParseError,
    UnreachableError,
    UsageError,
)
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.formats.slurm_jobs import (
    IN_UTC,
    JOB_ID,
    SACCT_FIELDS,
    SEPARATOR,
    parse_sacct,
    parse_scontrol_job,
)
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import RESERVED_MIN, Submission

_NO_PROGRAM = 127
"""Exit status of env(1) and of a shell where a program is not installed."""
FORGOTTEN = "Slurm keeps a job for MinJobAge seconds after its end; later it needs accounting (slurmdbd)"


@dataclass(frozen=True, slots=True)
class SlurmJobs:
    """Meets `ports.jobs.Jobs`. `ssh`: the host with Slurm's tools; empty for this one."""

    ssh: str = ""

    def job(self, job: str, deadline: Deadline) -> ScheduledJob:
        if not JOB_ID.fullmatch(job):
            raise UsageError(f"{job!r} is no job id", where="JOBID", remedy="give the number, or ARRAY_TASK, of squeue")
        shown = self._run(("env", *IN_UTC, "scontrol", "--details", "show", "job", job), deadline)
        if shown.exit_status == 0:
            found = self._parsed(shown.stdout)
            if found.over or found.started is not None or not found.restarts:
                return found
        attempts = self._accounted(job, deadline)
        if attempts:
            return attempts[-1]
        if shown.exit_status == 0:
            return found
        printed = visible_line(" ".join(shown.stderr.split()), 200) or "no message"
        raise UsageError(f"Slurm does not know it: {printed}", where=f"job {job}", remedy=FORGOTTEN)

    def names(self, node_list: str, deadline: Deadline) -> Sequence[str]:
        if not node_list:
            return ()
        ran = self._require(("scontrol", "show", "hostnames", node_list), deadline)
        return tuple(ran.stdout.split())

    def marked(self, comment: str, deadline: Deadline, user: str = "") -> str:
        argv = ("squeue", "--states=all", "--noheader", "--format=%i|%u|%k")
        for line in self._require(argv, deadline).stdout.splitlines():
            job, owner, found = (part.strip() for part in (*line.split("|", 2), "", "")[:3])
            if found == comment and user in ("", owner) and JOB_ID.fullmatch(job):
                return job
        return ""

    def assign(self, job: str, nodes: Sequence[str], deadline: Deadline) -> None:
        deadline.check("releasing a job")
        count = f"NumNodes={len(nodes)}-{len(nodes)}"
        self._require(("scontrol", "update", f"JobId={job}", f"ReqNodeList={','.join(nodes)}", count), deadline)
        self._require(("scontrol", "release", job), deadline)

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        deadline.check("submitting a job")
        try:
            ran = self._run(sbatch(submission), deadline)
        except UnreachableError as error:
            raise OutcomeUnknownError(
                f"sbatch gave no answer: {error.message}", where="sbatch", remedy=REMEDY
            ) from None
        job = ran.stdout.strip().partition(";")[0]
        if ran.exit_status != 0:
            raise OutcomeUnknownError(_printed(ran), where="sbatch", remedy="see squeue, then correct what it reports")
        if not JOB_ID.fullmatch(job):
            raise OutcomeUnknownError(f"it printed no job id: {job[:100]!r}", where="sbatch", remedy=REMEDY)
        return job

    def reserve(self, name: str, nodes: Sequence[str], deadline: Deadline) -> None:
        deadline.check("reserving spares")
        settings = (f"Nodes={','.join(nodes)}", f"EndTime=now+{RESERVED_MIN}minutes")
        renewed = self._run(("scontrol", "update", f"ReservationName={name}", *settings), deadline)
        if renewed.exit_status == 0:
            return
        user = self._require(("id", "-un"), deadline).stdout.strip()
        made = (f"ReservationName={name}", f"Users={user}", "StartTime=now", "Flags=IGNORE_JOBS")
        self._require(("scontrol", "create", "reservation", *made, *settings), deadline)

    def unreserve(self, name: str, deadline: Deadline) -> None:
        deadline.check("ending a reservation")
        self._run(("scontrol", "delete", f"ReservationName={name}"), deadline)  # refused where there is none

    def cancel(self, job: str, deadline: Deadline) -> None:
        deadline.check("cancelling a job")
        self._require(("scancel", job), deadline)

    def _accounted(self, job: str, deadline: Deadline) -> tuple[ScheduledJob, ...]:
        """Return the attempts that have begun; none where accounting is not set up."""
        fields, line = ",".join(SACCT_FIELDS), ("--allocations", "--duplicates", "--noheader", "--parsable2")
        argv = ("env", *IN_UTC, "sacct", "-j", job, *line, f"--delimiter={SEPARATOR}", f"--format={fields}")
        ran = self._run(argv, deadline)
        if ran.exit_status != 0:
            return ()
        try:
            return tuple(one for one in parse_sacct(ran.stdout) if one.started is not None)
        except ParseError as error:
            raise EdgeError(f"its answer was not understood: {error}", where="sacct", remedy=REMEDY) from error

    @staticmethod
    def _parsed(text: str) -> ScheduledJob:
        try:
            return parse_scontrol_job(text)
        except ParseError as error:
            remedy = "give one job; of an array, one task: ARRAY_TASK"
            raise EdgeError(
                f"its answer was not understood: {error}", where="scontrol show job", remedy=remedy
            ) from error

    def _require(self, argv: Sequence[str], deadline: Deadline) -> ProcessResult:
        ran = self._run(argv, deadline)
        if ran.exit_status != 0:
            raise EdgeError(_printed(ran), where=argv[0], remedy=REMEDY)
        return ran

    def _run(self, argv: Sequence[str], deadline: Deadline) -> ProcessResult:
        surroundings = Surroundings(missing=LACKING, inherited=ENVIRONMENT)
        ran = run(on_slurm_host(self.ssh, argv), deadline.within(SECONDS), surroundings)
        if ran.exit_status == _NO_PROGRAM:
            raise EnvironmentBrokenError(_printed(ran), where=self.ssh or "controller", remedy=LACKING)
        return ran


def sbatch(submission: Submission) -> tuple[str, ...]:
    """Return the command. The supervisor, not Slurm, starts the job again: one owner of restarts."""
    return (
        "env",
        *(f"{name}={value}" for name, value in submission.variables),
        "sbatch",
        "--parsable",
        "--no-requeue",
        "--open-mode=append",
        *submission.options,
        f"--comment={submission.comment}",
        f"--nodes={len(submission.nodes) or submission.count}",
        *((f"--nodelist={','.join(submission.nodes)}",) if submission.nodes else ()),
        *(("--hold",) if submission.held else ()),
        f"--output={submission.output}",
        submission.script,
        *submission.arguments,
    )


def _printed(ran: ProcessResult) -> str:
    text = visible_line(" ".join((ran.stderr or ran.stdout).split())[-300:], 300)
    return f"exit status {ran.exit_status}: {text or 'no message'}"
