"""Jobs as JSON documents: supervised runs, what became of a job, stacks, differences. For command line and API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from clusterctl.fleet.payloads.jobs import JobAttemptEnded

if TYPE_CHECKING:
    from clusterctl.jobs.attribution import Candidate, Suspect
    from clusterctl.jobs.supervision import Attempt, SupervisedRun
    from clusterctl.operations.job_checklist import Answer
    from clusterctl.operations.job_runs import Difference
    from clusterctl.operations.job_stacks import StacksResult
    from clusterctl.operations.job_why import WhyResult


def run_json(found: SupervisedRun) -> dict[str, Any]:
    """Return a run with its attempts. Keys are only ever added."""
    return {
        "name": found.id,
        "state": state_of(found),
        "reason": found.reason,
        "script": found.ordered.script,
        "ordered": found.at.isoformat(),
        "actor": found.actor,
        "owner": found.owner,
        "nodes": found.ordered.nodes,
        "folder": found.ordered.folder,
        "attempts": [_attempt_json(one) for one in found.attempts],
    }


def _attempt_json(one: Attempt) -> dict[str, Any]:
    ended = one.ended
    return {
        "attempt": one.number,
        "job": one.job,
        "nodes": list(one.nodes),
        "avoided": list(one.avoided),
        "drained": list(one.drained),
        "manifest": one.manifest,
        **(_UNENDED if ended is None else _ended_json(ended)),
    }


def _ended_json(ended: JobAttemptEnded) -> dict[str, Any]:
    return {
        "state": ended.state,
        "failure": ended.failure.value,
        "layer": ended.layer.value,
        "certainty": ended.certainty.value,
        "cause": ended.cause,
        "hosts": list(ended.hosts),
        "action": ended.action,
        "first_step": ended.first,
        "last_step": ended.last,
        "checkpoint": ended.saved,
    }


_UNENDED: dict[str, Any] = {
    **dict.fromkeys(("state", "failure", "layer", "certainty", "cause")),
    "hosts": [],
    **dict.fromkeys(("action", "first_step", "last_step", "checkpoint")),
}
"""The same of an attempt that goes on."""


def state_of(found: SupervisedRun) -> str:
    """Return `running`, or how the run ended."""
    return found.outcome.value if found.outcome is not None else "running"


def why_json(result: WhyResult) -> dict[str, Any]:
    """Return what a job failed of. Keys are only ever added."""
    found = result.attribution
    return {
        "job": found.job,
        "cause": _candidate_json(found.cause),
        "others": [_candidate_json(one) for one in found.others],
        "consequences": dict(found.consequences),
        "unmeasured": list(found.unmeasured),
        "last_step": result.progress.iteration if result.progress else None,
        "hosts": result.hosts,
        "lines": result.lines,
        "bytes_read": result.bytes_read,
        "earlier_failures": result.earlier,
        "recorded": result.recorded,
        "folder": str(result.folder) if result.folder else None,
        "unread_nodes": dict(result.unread),
    }


def _candidate_json(one: Candidate) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "failure": one.failure.value,
        "layer": one.layer.value,
        "certainty": one.certainty.value,
        "persistence": one.persistence.value,
        "cause": one.cause,
        "action": one.action.value,
        "remedy": one.remedy,
        "error": one.error,
        "at": one.at.isoformat() if one.at else None,
        "step": one.iteration,
        "suspects": [_suspect_json(suspect) for suspect in one.suspects],
        "because": list(one.because),
        "line": one.first.text if one.first else "",
        "place": one.first.place if one.first else "",
    }


def _suspect_json(suspect: Suspect) -> dict[str, Any]:
    return {"host": suspect.host, "part": suspect.part, "rank": suspect.rank}


def stacks_json(result: StacksResult) -> dict[str, Any]:
    """Return the groups of equal stacks, the smallest first."""
    groups = [
        {"ranks": list(one.ranks), "hosts": list(one.hosts), "kernel": list(one.kernel), "frames": list(one.frames)}
        for one in result.groups
    ]
    return {"groups": groups, "unread": list(result.unread)}


def differences_json(found: Sequence[Difference]) -> dict[str, Any]:
    """Return what differs between two manifests."""
    return {"differences": [{"field": one.field, "first": one.first, "second": one.second} for one in found]}


def answers_json(found: Sequence[Answer]) -> dict[str, Any]:
    """Return the answers of the checklist."""
    return {"answers": [{"question": one.question, "answer": one.answer, "good": one.good} for one in found]}
