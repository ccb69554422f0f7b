"""Supervised runs as lines, from their documents (`job_documents.run_json`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Document = Mapping[str, Any]


def run_lines(found: Document) -> Iterator[str]:
    """Yield a run and its attempts as lines."""
    reason = f": {found['reason']}" if found["reason"] else ""
    yield f"{found['name']}  {found['state']}{reason}"
    nodes = "1 node" if found["nodes"] == 1 else f"{found['nodes']} nodes"
    if found["script"]:
        yield f"  script  {found['script']} on {nodes}, by {found['owner']}"
        yield f"  logs    {found['folder']}"
    else:
        yield f"  {nodes}, by {found['owner']}"
    for one in found["attempts"]:
        yield from _attempt_lines(one)


def _attempt_lines(one: Document) -> Iterator[str]:
    job = f"job {one['job']}" if one["job"] else "not submitted yet"
    nodes = ", ".join(one["nodes"][:4]) + (f" and {len(one['nodes']) - 4} more" if len(one["nodes"]) > 4 else "")
    yield f"  attempt {one['attempt']}: {job} on {nodes}"
    if one["avoided"]:
        yield f"    without {', '.join(one['avoided'])}"
    if one["state"]:
        yield from _end_lines(one)
    if one["drained"]:
        yield f"    drained {', '.join(one['drained'])}"


def _end_lines(one: Document) -> Iterator[str]:
    hosts = f" ({', '.join(one['hosts'][:4])})" if one["hosts"] else ""
    yield f"    {one['state']}: {one['cause'] or 'no cause is known'}{hosts}"
    if one["last_step"] is not None:
        saved = f", last checkpoint after step {one['checkpoint']}" if one["checkpoint"] is not None else ""
        yield f"    steps {one['first_step']} to {one['last_step']}{saved}"
