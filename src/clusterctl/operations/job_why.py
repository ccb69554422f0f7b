"""Why a job failed: evidence collected, attributed, and what is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from clusterctl.edges.job_logs import FolderEvidence, read_folder
from clusterctl.formats.job_facts import JobFacts, moment
from clusterctl.jobs.attribute import attribute
from clusterctl.jobs.attribution import Attribution
from clusterctl.jobs.evidence import JobEvidence, Progress, SchedulerFacts

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.operation import Control


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyRequest:
    """`logs`: a folder of recorded logs (docs/how-to/job-why.md); `record`: add the answer to the site's journal."""

    logs: Path
    record: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWhyRequest:
    """`job`: id of the scheduler's job; `target` and `patterns` as of `job_collect.CollectRequest`."""

    job: str
    target: Path | None = None
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyResult:
    """The attribution, and what it rests on: hosts, lines that a rule knows, bytes that were read.

    recorded  it was added to the journal
    earlier   failures of the last weeks that it was held against; None without a site
    folder    the logs; `unread`: nodes that did not answer, with the reason
    """

    attribution: Attribution
    hosts: int
    lines: int
    bytes_read: int
    progress: Progress | None = None
    recorded: bool = False
    earlier: int | None = None
    folder: Path | None = None
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """0: a cause was found; 1: it is unknown."""
        return 0 if self.attribution.cause.certainty.value != "unknown" else 1


def run(request: WhyRequest, context: SiteContext | None = None) -> WhyResult:
    """Attribute the failure that a folder has the logs of. Reaches no host.

    With a site, failures that its journal holds are evidence of recurrence.
    """
    folder = read_folder(request.logs)
    evidence = evidence_of(folder)
    found = attribute(evidence)
    earlier: int | None = None
    recorded = False
    if context is not None:
        from clusterctl.operations.job_history import earlier_failures, record

        evidence = replace(evidence, earlier=earlier_failures(context, found))
        earlier = len(evidence.earlier)
        found = attribute(evidence)
        recorded = request.record and record(context, found, folder.facts.user)
    return WhyResult(
        attribution=found,
        hosts=len(evidence.hosts),
        lines=sum(one.times for one in evidence.observations),
        bytes_read=folder.bytes_read,
        progress=evidence.progress,
        recorded=recorded,
        earlier=earlier,
        folder=request.logs,
    )


def run_job(context: SiteContext, request: JobWhyRequest, control: Control) -> WhyResult:
    """Collect the evidence of a job from its nodes, attribute its failure, and record the answer once it is over."""
    from clusterctl.operations.job_collect import CollectRequest, collect

    found = collect(context, CollectRequest(job=request.job, target=request.target, patterns=request.patterns), control)
    failed = found.job.over and found.job.state != "COMPLETED"
    result = run(WhyRequest(logs=found.folder, record=failed), context)
    return replace(result, unread=found.unread)


def evidence_of(folder: FolderEvidence) -> JobEvidence:
    """Return the evidence of a folder: hosts of ranks and addresses are those of `job.json`, and of its node list."""
    facts = folder.facts
    return JobEvidence(
        job=facts.job,
        observations=folder.observations,
        scheduler=_scheduler(facts),
        progress=folder.progress,
        records=folder.records,
        stacks=folder.stacks,
        processes=folder.processes,
        links=folder.links,
        bmc=folder.bmc,
        ranks=_ranks(facts, folder),
        addresses=facts.addresses,
        missing=folder.missing,
    )


def _scheduler(facts: JobFacts) -> SchedulerFacts:
    return SchedulerFacts(
        state=facts.state.split(" ")[0],
        exit_code=facts.exit_code,
        signal=facts.signal,
        nodes=facts.nodes,
        failed_nodes=facts.failed_nodes,
        silent_nodes=facts.silent_nodes,
        started=moment(facts.started, facts, where="started"),
        ended=moment(facts.ended, facts, where="ended"),
    )


def _ranks(facts: JobFacts, folder: FolderEvidence) -> Mapping[int, str]:
    """Return the host of each rank: as recorded, else as the logs in the folders of hosts show it."""
    if facts.ranks:
        return {int(rank): host for rank, host in facts.ranks.items()}
    seen: dict[int, set[str]] = {one.rank: {one.host} for one in folder.stacks if one.host}
    for rank, host in folder.ranks.items():
        seen.setdefault(rank, set()).update({host} - {""})
    for one in folder.observations:
        if one.rank is not None and one.host:
            seen.setdefault(one.rank, set()).add(one.host)
    return {rank: next(iter(hosts), "") for rank, hosts in seen.items() if len(hosts) < 2}
