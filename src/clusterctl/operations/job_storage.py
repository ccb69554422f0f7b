"""Which job floods the storage: what the nodes of running jobs ask of their network file systems. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl.jobs.storage_load import StorageLoad, loads
from clusterctl.operations.adapters import Access
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_collect import ALL_S, require_jobs
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRequest:
    """Running jobs, by id, and the seconds between the two readings of each node."""

    jobs: tuple[str, ...]
    seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageResult:
    """`unread`: nodes that were not read, with the reason: what their jobs ask is not known whole."""

    loads: tuple[StorageLoad, ...]
    unread: Mapping[str, str]


def run(context: SiteContext, request: StorageRequest, control: Control) -> StorageResult:
    """Read the nodes of all the jobs at once. Raises `UsageError` for a job that does not run."""
    deadline = Deadline.after(ALL_S, control.cancelled)
    with closing(context.adapters(Access.READ)) as adapters:
        jobs = require_jobs(context, adapters)
        nodes = {job: _nodes(jobs, job, deadline) for job in dict.fromkeys(request.jobs)}
        reader = StepFactory(context, adapters, control.cancelled, read_only=True).storage_reader()
        names = sorted({name for of_job in nodes.values() for name in of_job})
        found = list(reader.read(names, request.seconds, deadline))
    readings = {one.node: one.readings for one in found if one.readings is not None}
    unread = {one.node: one.error for one in found if one.readings is None}
    return StorageResult(loads=loads(nodes, readings), unread=dict(sorted(unread.items())))


def _nodes(jobs: Jobs, job: str, deadline: Deadline) -> tuple[str, ...]:
    found = jobs.job(job, deadline)
    if found.over or found.started is None or not found.node_list:
        message = f"it does not run: Slurm reports {found.state}"
        raise UsageError(message, where=f"job {job}", remedy="give running jobs: squeue --states=R --format=%i")
    return tuple(jobs.names(found.node_list, deadline))
