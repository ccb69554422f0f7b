"""A supervised run ordered and followed through the web service, and submitted by the user of the command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.operations.job_client import JobClient, is_single, part_of
from clusterctl.operations.job_inputs import JobRunRequest, ManifestInputs
from clusterctl_cli.approval import Flags, approve
from clusterctl_cli.text import echo

Document = Mapping[str, Any]


def order(client: JobClient, request: JobRunRequest, flags: Flags) -> Document | None:
    """Preview, ask, order and submit; return the run, None for `--dry-run`. What is refused leaves no open run."""
    preview, approved = client.preview(request)
    if not approve(preview, flags):
        return None
    run = client.order(request, approved)
    try:
        job = client.submit(request, run)
    except ClusterctlError:
        client.stop(run.name)
        raise
    echo(f"{run.name} is job {job}: clusterctl job watch {job} follows it", err=True)
    return _with_job(client.run(run.name), job)


def _with_job(run: Document, job: str) -> Document:
    """Return the run with the job of its first attempt, which the service may not have found in the scheduler yet."""
    first, *further = run.get("attempts") or [{}]
    return run if not first or first.get("job") else {**run, "attempts": [{**first, "job": job}, *further]}


def follow(client: JobClient, run: str) -> Document:
    """Print what the service reports of a run until it is over; return it. An interrupt ends this command alone."""
    shown: Document = {}
    step, attempts = None, ""
    try:
        for found in client.follow(run):
            shown = found.get("run") or shown
            lines = "\n".join(_attempt(one) for one in shown.get("attempts", ()))
            if lines != attempts:
                attempts = lines
                echo(lines.rpartition("\n")[2], err=True)
            if found.get("step") not in (None, step):
                step = found["step"]
                echo(f"step {step}", err=True)
    except KeyboardInterrupt:
        echo(f"the run goes on: clusterctl job watch {run} follows it, clusterctl job stop {run} ends it", err=True)
        raise
    return shown


def _attempt(one: Document) -> str:
    """Return where an attempt stands, as one line."""
    job = f"job {one.get('job')}" if one.get("job") else "not submitted yet"
    ended = f", ended: {one['state']}: {one.get('cause') or 'no cause is known'}" if one.get("state") else ""
    count = len(one.get("nodes") or ())
    return f"attempt {one.get('attempt')} is {job} on {count} node{'' if count == 1 else 's'}{ended}"


def request_of(options: Any, common: Mapping[str, Any], inputs: ManifestInputs) -> JobRunRequest:
    """Return the order for the service: paths as this machine has them, and how it reaches the services."""
    if not is_single(options.script):
        remedy = "remove --array (or hetjob) from its #SBATCH lines, and order one run for each task"
        raise UsageError("it asks Slurm for several jobs", where=str(options.script), remedy=remedy)
    return JobRunRequest(**common, part=part_of(inputs))
