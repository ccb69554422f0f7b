"""Why a job failed: evidence collected, attributed, and what is to be done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.job_logs import FolderEvidence, read_folder
from clusterctl.formats.job_facts import JobFacts, moment
from clusterctl.jobs.attribute import attribute
from clusterctl.jobs.attribution import Attribution
from clusterctl.jobs.evidence import JobEvidence, Progress, SchedulerFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyRequest:
    """`logs`: a folder of recorded logs (docs/how-to/job-why.md)."""

    logs: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyResult:
    """The attribution, and what it rests on: hosts, lines that a rule knows, bytes that were read."""

    attribution: Attribution
    hosts: int
    lines: int
    bytes_read: int
    progress: Progress | None = None

    @property
    def exit_code(self) -> int:
        """0: a cause was found; 1: it is unknown."""
        return 0 if self.attribution.cause.certainty.value != "unknown" else 1


def run(request: WhyRequest) -> WhyResult:
    """Attribute the failure that a folder has the logs of. Changes nothing, and reaches no host."""
    folder = read_folder(request.logs)
    evidence = evidence_of(folder)
    return WhyResult(
        attribution=attribute(evidence),
        hosts=len(evidence.hosts),
        lines=sum(one.times for one in evidence.observations),
        bytes_read=folder.bytes_read,
        progress=evidence.progress,
    )


def evidence_of(folder: FolderEvidence) -> JobEvidence:
    """Return the evidence of a folder: hosts of ranks and addresses are those of `job.json`, and of its node list."""
    facts = folder.facts
    return JobEvidence(
        job=facts.job,
        observations=folder.observations,
        scheduler=_scheduler(facts),
        progress=folder.progress,
        records=folder.records,
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
        started=moment(facts.started, facts, where="started"),
        ended=moment(facts.ended, facts, where="ended"),
    )


def _ranks(facts: JobFacts, folder: FolderEvidence) -> Mapping[int, str]:
    """Return the host of each rank: as recorded, else as the logs in the folders of hosts show it."""
    if facts.ranks:
        return {int(rank): host for rank, host in facts.ranks.items()}
    seen: dict[int, set[str]] = {}
    for one in folder.observations:
        if one.rank is not None and one.host:
            seen.setdefault(one.rank, set()).add(one.host)
    return {rank: next(iter(hosts)) for rank, hosts in seen.items() if len(hosts) == 1}
