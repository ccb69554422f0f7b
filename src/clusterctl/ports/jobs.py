"""Jobs of the scheduler: looking one up, submitting and cancelling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.ports.deadline import Deadline

RESERVED_MIN = 120
"""Minutes after which a reservation of spares ends by itself: longer than the longest pause of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A batch job that is to be submitted.

    script     path of the batch script on the host with Slurm's tools, and its `arguments`
    options    further options of sbatch, each a whole word (`--time=10`)
    nodes      the job runs on these and no others; empty: on `count` nodes that it gets once it is no longer held
    comment    by which the submission is found again
    output     path of the job's output
    held       it does not begin before `Jobs.assign`
    variables  environment variables that the job gets in addition
    """

    script: str
    comment: str
    nodes: tuple[str, ...]
    output: str
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = field(default=())
    count: int = 0
    held: bool = False


class Jobs(Protocol):
    """Raises only `ClusterctlError`s."""

    def job(self, job: str, deadline: Deadline) -> ScheduledJob:
        """Return the last attempt that has begun. Raises `UsageError` where the scheduler no longer knows the job."""
        ...

    def names(self, node_list: str, deadline: Deadline) -> Sequence[str]:
        """Return the nodes of a hostlist, in its order."""
        ...

    def marked(self, comment: str, deadline: Deadline, user: str = "") -> str:
        """Return the id of the job that was submitted with this comment, by this user; empty where there is none."""
        ...

    def assign(self, job: str, nodes: Sequence[str], deadline: Deadline) -> None:
        """Give a job that is held these nodes and no others, and release it; its user stays who submitted it."""
        ...

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        """Submit a batch job and return its id. Raises `OutcomeUnknownError` where it may have been submitted."""
        ...

    def reserve(self, name: str, nodes: Sequence[str], deadline: Deadline) -> None:
        """Keep other jobs off these nodes, and no others, under this name, for `RESERVED_MIN` minutes from now on."""
        ...

    def unreserve(self, name: str, deadline: Deadline) -> None:
        """End a reservation; do nothing where there is none of this name."""
        ...

    def cancel(self, job: str, deadline: Deadline) -> None:
        """Cancel a job; do nothing where it is over."""
        ...
