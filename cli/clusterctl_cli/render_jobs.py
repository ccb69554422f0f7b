"""Supervised runs as JSON and as lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clusterctl.jobs.supervision import Attempt, SupervisedRun


def run_json(found: SupervisedRun) -> dict[str, Any]:
    """Return a run with its attempts. Keys are only ever added."""
    return {
        "name": found.id,
        "state": state_of(found),
        "reason": found.reason,
        "script": found.ordered.script,
        "ordered": found.at.isoformat(),
        "actor": found.actor,
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
        "state": ended.state if ended else None,
        "failure": ended.failure.value if ended else None,
        "layer": ended.layer.value if ended else None,
        "certainty": ended.certainty.value if ended else None,
        "cause": ended.cause if ended else None,
        "hosts": list(ended.hosts) if ended else [],
        "action": ended.action if ended else None,
        "first_step": ended.first if ended else None,
        "last_step": ended.last if ended else None,
        "checkpoint": ended.saved if ended else None,
    }


def state_of(found: SupervisedRun) -> str:
    """Return `running`, or how the run ended."""
    return found.outcome.value if found.outcome is not None else "running"


def run_lines(found: SupervisedRun) -> Iterator[str]:
    """Yield a run and its attempts as lines."""
    reason = f": {found.reason}" if found.reason else ""
    yield f"{found.id}  {state_of(found)}{reason}"
    yield f"  script  {found.ordered.script} on {found.ordered.nodes} nodes, by {found.actor}"
    yield f"  logs    {found.ordered.folder}"
    for one in found.attempts:
        ended = one.ended
        job = f"job {one.job}" if one.job else "not submitted yet"
        nodes = ", ".join(one.nodes[:4]) + (f" and {len(one.nodes) - 4} more" if len(one.nodes) > 4 else "")
        yield f"  attempt {one.number}: {job} on {nodes}"
        if one.avoided:
            yield f"    without {', '.join(one.avoided)}"
        if ended is not None:
            hosts = f" ({', '.join(ended.hosts[:4])})" if ended.hosts else ""
            yield f"    {ended.state}: {ended.cause or 'no cause is known'}{hosts}"
            if ended.last is not None:
                saved = f", last checkpoint after step {ended.saved}" if ended.saved is not None else ""
                yield f"    steps {ended.first} to {ended.last}{saved}"
        if one.drained:
            yield f"    drained {', '.join(one.drained)}"
