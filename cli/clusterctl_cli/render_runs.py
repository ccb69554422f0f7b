"""Detached runs as text and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from clusterctl.fleet.peer_text import visible
from clusterctl.operations import runs
from clusterctl.operations.context import SiteContext
from clusterctl.operations.runs import RunRecord, RunState
from clusterctl.operations.serial import to_data
from clusterctl.operations.workers import WorkerRecord, Workers
from clusterctl_cli.text import ago, columns, duration, terminal_width

NONE = "No detached run. Begin one with --detach or --queue: clusterctl bootstrap --detach"


def state_text(record: RunRecord) -> str:
    """Return the state, with the exit code where it has ended: `ended 0`."""
    return f"ended {record.exit_code}" if record.state is RunState.ENDED else record.state.value


def runs_text(records: Sequence[RunRecord], now: datetime) -> str:
    """Return one line per run."""
    if not records:
        return NONE
    head = ("RUN", "STATE", "COMMAND", "BY", "ORDERED", "")
    rows = [
        (one.name, state_text(one), one.command, one.actor, ago(one.ordered, now), one.text or _asked(one))
        for one in records
    ]
    return visible(columns(head, rows, width=terminal_width()))


def _asked(record: RunRecord) -> str:
    return f"{record.cancelled_by} asked it to stop" if record.cancelled_by and record.active else ""


def ordered_text(record: RunRecord) -> str:
    """Return what an operator needs to know of a run that was ordered just now."""
    follow = f"clusterctl runs show {record.name} --watch"
    for_pool = f" for a worker of pool {record.pool}" if record.pool else ""
    return f"run {record.name} is {state_text(record)}{for_pool}; it goes on without this terminal\nfollow it: {follow}"


def details_text(context: SiteContext, record: RunRecord, lines: int) -> str:
    """Return a run with the progress of its nodes and the last lines of its log."""
    return visible("\n".join(_details(context, record, lines)))


def _details(context: SiteContext, record: RunRecord, lines: int) -> Iterator[str]:
    yield f"run {record.name}: {state_text(record)}"
    yield from (f"  {name:<10}{value}" for name, value in _facts(context, record) if value)
    nodes = runs.progress(context, record)
    if nodes:
        rows = [(one.node, f"{one.at:%H:%M:%S}", one.text) for one in nodes]
        yield from ("", columns(("NODE", "AT", "PROGRESS"), rows, width=terminal_width()))
    if log := runs.log_lines(context, record.name, lines):
        yield from ("", "log (last lines):", *(f"  {line}" for line in log))
    if record.state is RunState.LOST:
        yield from ("", f"Its process is gone. Go on where it was: clusterctl runs retry {record.name}")


def _facts(context: SiteContext, record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "command", record.command
    yield "by", record.actor
    yield "ordered", f"{record.ordered:%Y-%m-%d %H:%M:%S} UTC"
    if record.began:
        yield "began", f"{record.began:%Y-%m-%d %H:%M:%S} UTC"
    if record.ended:
        took = f", after {duration((record.ended - record.began).total_seconds())}" if record.began else ""
        yield "ended", f"{record.ended:%Y-%m-%d %H:%M:%S} UTC{took}"
    yield "pool", f"{record.pool}, priority {record.priority}" if record.pool else ""
    yield "worker", record.worker
    yield "process", f"{record.process.pid} on {record.process.host}" if record.process else ""
    yield "retry of", record.earlier
    yield "cancelled", f"{record.cancelled_by} asked it to stop" if record.cancelled_by else ""
    yield "because", record.text
    yield "request", ", ".join(f"{key}: {value}" for key, value in _given(record))
    yield "log", str(runs.log_path(context, record.name))


def _given(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield the fields of the request that are set."""
    for key, value in record.request.items():
        if value not in (None, "", [], False):
            yield key, " ".join(map(str, value)) if isinstance(value, list) else str(value)


def workers_text(found: Workers, now: datetime) -> str:
    """Return one line per worker, and one per run that waits."""
    return visible("\n".join(_workers(found, now)))


def _workers(found: Workers, now: datetime) -> Iterator[str]:
    if found.workers:
        rows = [
            (one.name, one.pool, " ".join(one.reach) or "all", ago(one.seen, now), _doing(one)) for one in found.workers
        ]
        yield columns(("WORKER", "POOL", "REACH", "SEEN", "DOES"), rows, width=terminal_width())
    else:
        yield "No worker. Begin one: clusterctl worker --pool NAME"
    if found.waiting:
        waiting = [(run.name, run.pool, str(run.priority), run.why) for run in found.waiting]
        yield from ("", columns(("WAITING RUN", "POOL", "PRIORITY", ""), waiting, width=terminal_width()))


def _doing(worker: WorkerRecord) -> str:
    if not worker.alive:
        return "lost"
    return worker.run or "waits"


def run_json(context: SiteContext, record: RunRecord) -> dict[str, Any]:
    """Return a run with the keys of `RunRecord`, and `log`, the path of its log."""
    found: dict[str, Any] = to_data(record)
    return {**found, "log": str(runs.log_path(context, record.name))}


def details_json(context: SiteContext, record: RunRecord, lines: int) -> dict[str, Any]:
    """Return a run as `run_json`, with the progress of its nodes and the last lines of its log."""
    nodes = [to_data(one) for one in runs.progress(context, record)]
    return {**run_json(context, record), "nodes": nodes, "lines": list(runs.log_lines(context, record.name, lines))}
