"""Evidence of a job of the scheduler, collected from all its nodes into a folder. Changes nothing on the nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from clusterctl.edges.job_folder import JobFolder, remove_folders
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.formats.node_evidence import NodeFiles
from clusterctl.jobs.collection import CollectionRequest, Wanted
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.compose import StepFactory
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_files import outdated
from clusterctl.operations.operation import Control, Event, current_time
from clusterctl.operations.site_facts import state_dir
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Jobs

ALL_S = 600.0
"""Seconds for the whole collection."""
SCHEDULER_S = 60.0
BEFORE = timedelta(minutes=5)
AFTER = timedelta(minutes=2)
LONGEST = timedelta(hours=6)
"""Of a longer job only the last hours are read: what it went on after for so long did not end it."""
RECENT = timedelta(minutes=10)
"""So long after a job's end the states of its nodes show what ended it."""
NOT_ANSWERING = "*"
"""The sign behind the state of a node whose daemon does not answer: sinfo(1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectRequest:
    """What is collected of which job.

    job       its id
    target    the folder that is written, new or empty; None: one in the site's state
    patterns  paths on the nodes, with wildcards, of further files; `%j` is the job's id
    wanted    the parts that are read
    """

    job: str
    target: Path | None = None
    patterns: tuple[str, ...] = ()
    wanted: Wanted = field(default_factory=Wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """`unread`: nodes of which the host did not answer, with the reason."""

    folder: Path
    job: ScheduledJob
    nodes: tuple[str, ...]
    unread: Mapping[str, str]


def require_jobs(context: SiteContext, adapters: Adapters, instead: str = "") -> Jobs:
    """Return the scheduler's jobs. Raises `UsageError` without Slurm; `instead`: what else the command takes."""
    if adapters.jobs is None:
        raise UsageError(
            "the site's scheduler is not Slurm: its jobs are unknown",
            where=context.site.where("scheduler"),
            remedy=f"add scheduler: {{kind: slurm}}{instead}",
        )
    return adapters.jobs


def owner_of(context: SiteContext, job: str) -> str:
    """Return the user of a job, as the scheduler has it; empty where it knows none. Raises `UsageError`."""
    with closing(context.adapters(Access.READ)) as adapters:
        return require_jobs(context, adapters).job(job, Deadline.after(SCHEDULER_S)).user


def collect(context: SiteContext, request: CollectRequest, control: Control) -> Collected:
    """Read the job's nodes at once, and write what they hold. A node that cannot be read is missing, and no more.

    Raises `UsageError` where the scheduler does not know the job, or it has not begun.
    """
    with closing(context.adapters(Access.READ)) as adapters:
        require_jobs(context, adapters, ", or give recorded logs: --logs DIR")
        return collect_with(context, adapters, request, control)


def collect_with(context: SiteContext, adapters: Adapters, request: CollectRequest, control: Control) -> Collected:
    """Do as `collect`, with adapters that are open already."""
    deadline = Deadline.after(ALL_S, control.cancelled)
    jobs = require_jobs(context, adapters)
    job = jobs.job(request.job, deadline)
    if job.started is None or not job.node_list:
        message = f"it has not begun: Slurm reports {job.state}"
        raise UsageError(message, where=f"job {job.job}", remedy="wait until it runs, or has failed")
    names = tuple(jobs.names(job.node_list, deadline))
    folder = JobFolder(request.target or state_dir(context.site) / "jobs" / job.job / context.run)
    order = _order(job, names, request)
    factory = StepFactory(context, adapters, control.cancelled, read_only=True)
    unread: dict[str, str] = {}
    running: set[str] = set()
    missing: list[str] = []
    facts = _HostFacts()
    for one in factory.job_collector().collect(order, deadline):
        shared = of_all_ranks(job, names, one.found.files)
        folder.add("", shared)
        folder.add(one.node, {name: one.found.files[name] for name in one.found.files.keys() - shared.keys()})
        missing += [f"{one.node}: {text}" for text in one.missing]
        if not one.answered:
            unread[one.node] = one.missing[0] if one.missing else ""
            control.on_event(Event(text=unread[one.node], node=one.node))
        elif one.found.booted is not None and one.found.booted < job.started:
            running.add(one.node)
        facts.take(one.node, one.found, of_the_job=one.node == job.batch_host)
    lost = _lost(job, names, _Answers(frozenset(unread), frozenset(running)), adapters, deadline)
    folder.close(_facts(job, names, lost, facts), (*missing, *lost.unknown))
    remove_folders(outdated(context.site))
    return Collected(folder=folder.path, job=job, nodes=names, unread=unread)


@dataclass(slots=True, kw_only=True)
class _HostFacts:
    """What the hosts know about the job: whose addresses and ranks are whose, and the time zone of its logs."""

    addresses: dict[str, str] = field(default_factory=dict)
    ranks: dict[str, str] = field(default_factory=dict)
    utc_offset: str = ""

    def take(self, host: str, found: NodeFiles, *, of_the_job: bool) -> None:
        """Take what a host knows. `of_the_job`: the job's script runs there, so its time zone is that of the logs."""
        self.addresses |= dict.fromkeys(found.addresses, host)
        self.ranks |= {str(rank): host for rank in found.ranks}
        if of_the_job or not self.utc_offset:
            self.utc_offset = found.utc_offset


def of_all_ranks(job: ScheduledJob, names: tuple[str, ...], files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files that hold the output of all ranks: their lines are not those of the node that they were read on.

    The nodes' program puts a number and a dash before the name of each file of the job.
    """
    outputs = {path.rpartition("/")[2] for path in (job.stdout, job.stderr) if path} if len(names) > 1 else set()
    return {name: content for name, content in files.items() if name.partition("-")[2] in outputs}


def _order(job: ScheduledJob, names: tuple[str, ...], request: CollectRequest) -> CollectionRequest:
    until = job.ended if job.over and job.ended else current_time()
    began = job.started or until
    since = max(began - BEFORE, until - LONGEST)
    return CollectionRequest(
        job=job,
        nodes=names,
        since=since,
        until=until + AFTER,
        patterns=request.patterns,
        wanted=request.wanted,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LostNodes:
    """`nodes`: lost by the scheduler; `silent`: only its daemon does not answer; `unknown`: what could not be read."""

    nodes: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answers:
    """Nodes by what their hosts answered, as `lost_of` takes them."""

    unread: frozenset[str]
    running: frozenset[str]


def _lost(
    job: ScheduledJob, names: tuple[str, ...], answers: _Answers, adapters: Adapters, deadline: Deadline
) -> LostNodes:
    """Return which nodes of the job are lost, by their states in the scheduler."""
    if job.state == "COMPLETED" or adapters.scheduler is None or _is_long_over(job):
        return LostNodes()
    try:
        seen = adapters.scheduler.look(deadline).value
    except ClusterctlError as error:
        return LostNodes(unknown=(f"the states of the nodes: {error.message}",))
    return lost_of(job, {name: seen[name].state for name in names if name in seen}, answers.unread, answers.running)


def _is_long_over(job: ScheduledJob) -> bool:
    """Return whether the states of the nodes are no longer those of its end. NODE_FAIL names nodes at any time."""
    if not job.over or job.state == "NODE_FAIL":
        return False
    return job.ended is None or current_time() - job.ended > RECENT


def lost_of(
    job: ScheduledJob, states: Mapping[str, str], unread: Collection[str], running: Collection[str]
) -> LostNodes:
    """Return the nodes that the scheduler lost, and those whose daemon does not answer it, by their `states` in it.

    unread   nodes whose hosts did not answer
    running  nodes whose hosts answered, and run since before the job's start

    A node of a job that runs, or has failed just now, is lost where its host does not answer either: Slurm notices it
    minutes later, and ranks that lose their peer end the job before. Of a job that ended by it, only the daemon is
    silent where the host answers, and has not booted since the job's start.
    """
    silent = [name for name, state in states.items() if state.endswith(NOT_ANSWERING)]
    if job.state == "NODE_FAIL":
        alive = tuple(name for name in silent if name in running)
        down = tuple(name for name, state in states.items() if state.startswith("down") and name not in alive)
        return LostNodes(nodes=down, silent=alive)
    return LostNodes(
        nodes=tuple(name for name in silent if name in unread),
        silent=tuple(name for name in silent if name not in unread),
    )


def _facts(job: ScheduledJob, names: tuple[str, ...], lost: LostNodes, found: _HostFacts) -> Mapping[str, Any]:
    """Return the document `job.json` (formats/job_facts.py)."""
    return {
        "version": 1,
        "job": job.job,
        "state": job.state,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "user": job.user,
        "nodes": list(names),
        "failed_nodes": list(lost.nodes),
        "silent_nodes": list(lost.silent),
        **dict(_times(job)),
        **{name: value for name, value in asdict(found).items() if value},
    }


def _times(job: ScheduledJob) -> Iterator[tuple[str, str]]:
    times: Mapping[str, datetime | None] = {"started": job.started, "ended": job.ended if job.over else None}
    for name, at in times.items():
        if at is not None:
            yield name, at.isoformat()
