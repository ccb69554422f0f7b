"""A supervised run ordered: the healthiest free nodes are chosen, and its first attempt is submitted."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from clusterctl.fleet.errors import (
    CancelledError,
    ClusterctlError,
    ConflictError,
    EdgeError,
    OutcomeUnknownError,
    UsageError,
)
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.jobs import JobRunEnded, JobSubmitIntended, JobSubmitted
from clusterctl.formats.slurm_jobs import is_one_job
from clusterctl.jobs.placement import JobPlacement, place
from clusterctl.jobs.progress import reader
from clusterctl.jobs.supervision import JobOutcome, SupervisedRun
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_collect import require_jobs
from clusterctl.operations.job_files import attempt_folder, script_text
from clusterctl.operations.job_inputs import JobRunRequest, ManifestInputs, comment_of, submission, user_part
from clusterctl.operations.job_manifest import manifest, read_manifest
from clusterctl.operations.job_placement import free_nodes
from clusterctl.operations.job_runs import listed, named
from clusterctl.operations.operation import Control, Effect, Event, Preview, current_time
from clusterctl.ports import Claim, Deadline
from clusterctl.ports.jobs import Jobs
from clusterctl.steps.executor.lease import sole_claim

logger = logging.getLogger(__name__)

NAME = "job run"
SCHEDULER_S = 300.0
BY_USER = timedelta(minutes=10)
"""So long after the order of a run that its user submits, its first job must be there."""


def claim_of(run: str) -> NodeId:
    """Return the subject of the claim that its watcher holds."""
    return NodeId(f"job {run}")


@contextmanager
def alone(context: SiteContext, run: str, control: Control) -> Iterator[Claim]:
    """Act on a run as the only process for the time. Raises `UsageError` where another one does."""
    with sole_claim(context.journal, claim_of(run), context.run, control.cancelled.set) as claim:
        yield claim


def preview(context: SiteContext, request: JobRunRequest) -> Preview:
    """Return the nodes that the run would get now. Raises `UsageError` where too few are free."""
    _require_one_job(Path(request.script))
    with closing(context.adapters(Access.READ)) as adapters:
        chosen = placement_now(context, adapters, request.nodes, request.spares)
    return placed(Path(request.script).name, chosen, request.spares)


def placed(script: str, placement: JobPlacement, spares: int) -> Preview:
    """Return what is asked before a run is ordered: the nodes that it would get now."""
    effects = [
        Effect(node=one.name, text=f"place {at} in the order of ranks{_against(one.reasons)}")
        for at, one in enumerate(placement.chosen)
    ]
    effects += [Effect(node=one.name, text=f"reserved as a spare{_against(one.reasons)}") for one in placement.spares]
    lacking = spares - len(placement.spares)
    warnings = (f"only {len(placement.spares)} of {spares} spares are free",) if lacking > 0 else ()
    count = len(placement.chosen)
    question = f"Run {script} on {count} node{'s' if count > 1 else ''}?"
    return Preview(operation=NAME, question=question, effects=tuple(effects), warnings=warnings)


def run(context: SiteContext, request: JobRunRequest, control: Control) -> SupervisedRun:
    """Order the run and submit its first attempt. Raises `UsageError` where too few nodes are free.

    A kill after the order leaves a run that `job watch` goes on with.
    """
    if control.approved is not None:
        control.require(preview(context, request))
    for name in request.readers:
        reader(name)
    _require_one_job(Path(request.script))
    name = f"run-{context.run}"
    with closing(context.adapters(Access.READ)) as adapters, alone(context, name, control) as claim:
        require_jobs(context, adapters)
        deadline = Deadline.after(SCHEDULER_S, control.cancelled)
        placement = placement_now(context, adapters, request.nodes, request.spares)
        chosen = [one.name for one in placement.chosen]
        part = {"services": (), **request.part}
        evidence = manifest(context, part, request.variables, chosen)
        context.journal.store([evidence])
        intent = intended(name, 1, placement, ())
        ordered = NewEvent(Stream.JOB, name, request.ordered())
        context.journal.append([ordered, NewEvent(Stream.JOB, name, intent, (evidence.digest,))], claim=claim)
        found = named(context, name)
        if trouble := hold_spares(context, adapters, found, deadline):
            control.on_event(Event(text=trouble))
        try:
            submit(context, adapters, found, claim, deadline)
        except OutcomeUnknownError:
            raise
        except EdgeError as error:
            ended = JobRunEnded(outcome=JobOutcome.ASKS.value, reason=error.message)
            context.journal.append([NewEvent(Stream.JOB, name, ended)])
            release_spares(context, adapters, name, deadline)
            raise
        found = named(context, name)
        if found.outcome is not None:
            close_run(context, adapters, found, deadline)
    return found


def _require_one_job(script: Path) -> None:
    """Raise `UsageError` where a script is an array or has components: they are many jobs, and a run follows one."""
    if not is_one_job(script_text(script)):
        remedy = "remove --array (or hetjob) from its #SBATCH lines, and order one run for each task"
        raise UsageError("it asks Slurm for several jobs", where=str(script), remedy=remedy)


def submit_next(
    context: SiteContext, adapters: Adapters, found: SupervisedRun, claim: Claim, deadline: Deadline
) -> bool:
    """Order the next attempt on the healthiest nodes without the suspects; return False where too few are free."""
    own = found.last.spares if found.last is not None else ()
    free = free_nodes(context, adapters, (*found.suspects, *promised(context)), deadline, own)
    placement = place(free, found.ordered.nodes, found.ordered.spares)
    if placement is None:
        return False
    chosen = [one.name for one in placement.chosen]
    part = _part_of_next(context, found, deadline)
    evidence = manifest(context, part, found.ordered.variables, chosen)
    context.journal.store([evidence])
    number = found.last.number + 1 if found.last is not None else 1
    intent = intended(found.id, number, placement, found.suspects)
    context.journal.append([NewEvent(Stream.JOB, found.id, intent, (evidence.digest,))], claim=claim)
    return True


def _part_of_next(context: SiteContext, found: SupervisedRun, deadline: Deadline) -> Mapping[str, Any]:
    """Return the user's part of the manifest as of now; of a run that its user submits, as the user has sent it."""
    first = read_manifest(context, found.attempts[0].manifest) if found.attempts else {}
    if found.ordered.submitter:
        return {name: first.get(name, "") for name in ("code", "image", "configs", "seed")} | {
            "services": dict(first.get("services", {}))
        }
    part = {name: first[name] for name in ("image", "configs", "seed") if name in first}
    folder = Path(str(first.get("code", {}).get("folder") or Path(found.ordered.script).parent))
    services = tuple(first.get("services", ()))
    return {**user_part(ManifestInputs(code=folder, services=services), deadline), **part}


def hold_spares(context: SiteContext, adapters: Adapters, found: SupervisedRun, deadline: Deadline) -> str:
    """Reserve the spares of the last attempt, and no other nodes; return why that failed, else an empty text."""
    jobs, spares = require_jobs(context, adapters), found.last.spares if found.last is not None else ()
    if not spares:
        release_spares(context, adapters, found.id, deadline)
        return ""
    try:
        jobs.reserve(reservation(found.id), spares, deadline)
    except CancelledError:
        raise
    except ClusterctlError as error:
        return f"spares are not reserved, other jobs may get them: {error.message}"
    return ""


def release_spares(context: SiteContext, adapters: Adapters, run: str, deadline: Deadline) -> None:
    """End the reservation of a run's spares; where Slurm does not answer, it ends by itself."""
    try:
        require_jobs(context, adapters).unreserve(reservation(run), deadline)
    except CancelledError:
        raise
    except ClusterctlError:
        logger.warning("The reservation %s was not ended: it ends by itself", reservation(run))


def close_run(context: SiteContext, adapters: Adapters, found: SupervisedRun, deadline: Deadline) -> None:
    """Release what the scheduler keeps for a run that is over: its spares, the held attempts of its user, and a job
    that was being submitted when the run was stopped.
    """
    release_spares(context, adapters, found.id, deadline)
    jobs, last = require_jobs(context, adapters), found.last
    if last is not None and last.job and last.ended is None:
        jobs.cancel(last.job, deadline)
    if not found.ordered.submitter:
        return
    for number in range(len(found.jobs) + 1, found.ordered.policy.retries + 2):
        try:
            if job := jobs.marked(comment_of(found.id, number), deadline, found.ordered.submitter):
                jobs.cancel(job, deadline)
        except CancelledError:
            raise
        except ClusterctlError as error:
            logger.warning("Held attempt %d of %s was not cancelled: %s", number, found.id, error.message)


def reservation(run: str) -> str:
    """Return the name of the reservation of a run's spares."""
    return f"clusterctl_{run}"


def submit(context: SiteContext, adapters: Adapters, found: SupervisedRun, claim: Claim, deadline: Deadline) -> None:
    """Submit the last attempt, which is intended, and record its job. Raises `EdgeError` where it was refused.

    Where sbatch fails, the scheduler is asked for the attempt's comment before anything else is believed; where it
    cannot be asked, `OutcomeUnknownError`: a watcher asks again.
    """
    jobs, attempt = require_jobs(context, adapters), found.last
    if attempt is None:
        raise ConflictError("no attempt is intended", where=found.id, remedy=f"clusterctl job watch {found.id}")
    attempt_folder(found.ordered.folder, attempt.number)
    try:
        wanted = submission(found.id, found.ordered, attempt.number, attempt.nodes)
        job = jobs.submit(replace(wanted, comment=attempt.comment), deadline)
    except OutcomeUnknownError as error:
        job = _marked(jobs, attempt.comment, deadline)
        if not job:
            raise EdgeError(
                f"the scheduler did not take it: {error.message}", where="sbatch", remedy=error.remedy
            ) from None
    submitted = JobSubmitted(attempt=attempt.number, job=job)
    context.journal.append([NewEvent(Stream.JOB, found.id, submitted)], claim=claim)


def _marked(jobs: Jobs, comment: str, deadline: Deadline) -> str:
    """Return the job with a comment, empty where there is none. Raises `OutcomeUnknownError` where it is not known."""
    try:
        return jobs.marked(comment, deadline)
    except EdgeError as error:
        remedy = "clusterctl job watch goes on with the run: it asks again"
        raise OutcomeUnknownError(error.message, where=error.where, remedy=remedy) from None


def promised(context: SiteContext) -> tuple[str, ...]:
    """Return the nodes of attempts that are about to be submitted: the scheduler still has them as idle."""
    since = current_time() - BY_USER
    open_ones = (one.last for one in listed(context) if one.outcome is None)
    waiting = (one for one in open_ones if one is not None and not one.job and one.intended_at > since)
    return tuple(dict.fromkeys(node for one in waiting for node in one.nodes))


def placement_now(context: SiteContext, adapters: Adapters, nodes: int, spares: int) -> JobPlacement:
    """Return the healthiest nodes that are idle now. Raises `UsageError` where too few are."""
    free = free_nodes(context, adapters, promised(context), Deadline.after(SCHEDULER_S))
    found = place(free, nodes, spares)
    if found is None:
        raise UsageError(
            f"{nodes} gold nodes are needed, {len(free)} are idle",
            where="--nodes",
            remedy="wait, or ask for fewer; clusterctl nodes -l stage=gold lists them",
        )
    return found


def _against(reasons: str) -> str:
    return f" ({reasons})" if reasons else ""


def intended(name: str, number: int, placement: JobPlacement, avoided: Sequence[str]) -> JobSubmitIntended:
    """Return the intent to submit an attempt to the nodes of a placement."""
    return JobSubmitIntended(
        attempt=number,
        nodes=tuple(one.name for one in placement.chosen),
        avoided=tuple(avoided),
        comment=comment_of(name, number),
        spares=tuple(one.name for one in placement.spares),
    )
