"""Supervised runs as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clusterctl.operations.job_documents import state_of

if TYPE_CHECKING:
    from clusterctl.fleet.payloads.jobs import JobAttemptEnded
    from clusterctl.jobs.supervision import Attempt, SupervisedRun


def run_lines(found: SupervisedRun) -> Iterator[str]:
    """Yield a run and its attempts as lines."""
    reason = f": {found.reason}" if found.reason else ""
    yield f"{found.id}  {state_of(found)}{reason}"
    yield f"  script  {found.ordered.script} on {found.ordered.nodes} nodes, by {found.actor}"
    yield f"  logs    {found.ordered.folder}"
    for one in found.attempts:
        yield from _attempt_lines(one)


def _attempt_lines(one: Attempt) -> Iterator[str]:
    job = f"job {one.job}" if one.job else "not submitted yet"
    nodes = ", ".join(one.nodes[:4]) + (f" and {len(one.nodes) - 4} more" if len(one.nodes) > 4 else "")
    yield f"  attempt {one.number}: {job} on {nodes}"
    if one.avoided:
        yield f"    without {', '.join(one.avoided)}"
    if one.ended is not None:
        yield from _end_lines(one.ended)
    if one.drained:
        yield f"    drained {', '.join(one.drained)}"


def _end_lines(ended: JobAttemptEnded) -> Iterator[str]:
    hosts = f" ({', '.join(ended.hosts[:4])})" if ended.hosts else ""
    yield f"    {ended.state}: {ended.cause or 'no cause is known'}{hosts}"
    if ended.last is not None:
        saved = f", last checkpoint after step {ended.saved}" if ended.saved is not None else ""
        yield f"    steps {ended.first} to {ended.last}{saved}"
