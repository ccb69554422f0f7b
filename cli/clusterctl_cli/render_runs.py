"""Detached runs as text and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from clusterctl.fleet.peer_text import visible
from clusterctl.operations import runs
from clusterctl.operations.context import SiteContext
from clusterctl.operations.pods import RunGroup
from clusterctl.operations.runs import RunRecord, RunState
from clusterctl.operations.serial import to_data
from clusterctl.operations.workers import WorkerRecord, Workers
from clusterctl_cli.text import ago, columns, duration, terminal_width

NONE = "No detached run. Begin one with --detach or --queue: clusterctl bootstrap --detach"


def state_text(record: RunRecord) -> str:
    """Return the state, with the exit code where it has ended: `ended 0`."""
    return f"ended {record.exit_code}" if record.state is RunState.ENDED else record.state.value


def runs_text(records: Sequence[RunRecord | RunGroup], now: datetime) -> str:
    """Return one line per run; the runs of one order over several pools are one line."""
    if not records:
        return NONE
    head = ("RUN", "STATE", "COMMAND", "BY", "ORDERED", "")
    return visible(columns(head, [_line(one, now) for one in records], width=terminal_width()))


def _line(one: RunRecord | RunGroup, now: datetime) -> tuple[str, ...]:
    if isinstance(one, RunGroup):
        first = one.first
        return one.name, group_state(one), first.command, first.actor, ago(first.ordered, now), _counts(one)
    return one.name, state_text(one), one.command, one.actor, ago(one.ordered, now), one.text or _asked(one)


def group_state(group: RunGroup) -> str:
    """Return the state of all runs together: `ended 1` where all have ended, the worst with exit code 1."""
    return group.state.value if group.active else f"ended {group.exit_code}"


def _counts(group: RunGroup) -> str:
    """Return how many of the runs are in which state: `3 runs: 1 running, 2 ended, 1 of them not with 0`."""
    counts = [(state, sum(run.state is state for run in group.runs)) for state in RunState]
    failed = sum(bool(run.exit_code) for run in group.ended)
    states = [f"{count} {state.value}" for state, count in counts if count]
    return f"{len(group.runs)} runs: {', '.join([*states, *([f'{failed} failed'] if failed else [])])}"


def order_text(context: SiteContext, found: RunRecord | RunGroup, lines: int) -> str:
    """Return a run as `details_text`, or one line for each run of an order."""
    if not isinstance(found, RunGroup):
        return details_text(context, found, lines)
    return visible("\n".join(_group(found)))


def _group(group: RunGroup) -> Iterator[str]:
    first = group.first
    yield f"order {group.name}: {group_state(group)}; {_counts(group)}"
    yield f"  {'command':<10}{first.command}"
    yield f"  {'by':<10}{first.actor}"
    yield f"  {'ordered':<10}{first.ordered:%Y-%m-%d %H:%M:%S} UTC"
    head = ("RUN", "STATE", "POOL", "WORKER", "NODES", "")
    rows = [
        (run.name, state_text(run), run.pool, run.worker, _nodes(run), run.text or _asked(run)) for run in group.runs
    ]
    yield from ("", columns(head, rows, width=terminal_width()))


def _nodes(record: RunRecord) -> str:
    """Return the nodes that the request names: `n1`, `n1 … n9 (9)`."""
    names = list(record.request.get("limit") or record.request.get("nodes") or [])
    if len(names) < 2:
        return "".join(map(str, names))
    return f"{names[0]} … {names[-1]} ({len(names)})"


def order_json(context: SiteContext, found: RunRecord | RunGroup, lines: int) -> dict[str, Any]:
    """Return a run as `details_json`, or an order with its runs as `run_json`."""
    if not isinstance(found, RunGroup):
        return details_json(context, found, lines)
    return {
        "name": found.name,
        "state": found.state.value,
        "exit_code": found.exit_code,
        "runs": [run_json(context, run) for run in found.runs],
    }


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
    yield "order", record.parent
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
