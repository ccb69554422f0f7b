"""Stacks of a hung job's ranks, grouped by equal stack: the small group is the suspect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.edges.job_logs import read_folder
from clusterctl.fleet.errors import UsageError
from clusterctl.jobs.evidence import Stack
from clusterctl.jobs.hangs import grouped_stacks

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.operation import Control


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksRequest:
    """`logs`: a folder with stacks of ranks (docs/how-to/job-why.md)."""

    logs: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class StackGroup:
    """Ranks with one stack, and their hosts."""

    frames: tuple[str, ...]
    kernel: tuple[str, ...]
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksResult:
    """The groups, the smallest first; `unread`: files that could not be read."""

    groups: tuple[StackGroup, ...]
    unread: tuple[str, ...] = ()


def run(request: StacksRequest) -> StacksResult:
    """Group the stacks of a folder. Raises `UsageError` where it holds none."""
    folder = read_folder(request.logs)
    if not folder.stacks:
        remedy = "write DIR/HOST/pyspy_rank_N.json with py-spy dump --json --pid PID"
        raise UsageError("holds no stack", where=str(request.logs), remedy=remedy)
    groups = reversed(grouped_stacks(folder.stacks))
    return StacksResult(groups=tuple(map(_group, groups)), unread=folder.missing)


def run_job(context: SiteContext, job: str, control: Control, target: Path | None = None) -> StacksResult:
    """Take the stacks of a running job's ranks on all its nodes, and group them. `target`: as of `CollectRequest`."""
    from clusterctl.jobs.collection import Wanted
    from clusterctl.operations.job_collect import CollectRequest, collect

    wanted = Wanted(kernel=False, files=False, bmc=False)
    found = collect(context, CollectRequest(job=job, wanted=wanted, target=target), control)
    folder = read_folder(found.folder)
    if not folder.stacks:
        unread = "; ".join(folder.missing[:3]) or "no process of it was found"
        raise UsageError(f"no stack could be taken: {unread}", where=f"job {job}", remedy="see whether its ranks run")
    return run(StacksRequest(logs=found.folder))


def _group(stacks: tuple[Stack, ...]) -> StackGroup:
    return StackGroup(
        frames=stacks[0].frames,
        kernel=stacks[0].kernel,
        ranks=tuple(sorted(one.rank for one in stacks)),
        hosts=tuple(sorted({one.host for one in stacks} - {""})),
    )
