"""A node's log and the journal's events of the node, as text and as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from clusterctl.fleet.event import Event
from clusterctl.formats.node_logs import LogLine
from clusterctl.operations.json_documents import event_json
from clusterctl.operations.node_logs import LogSource, LogsResult
from clusterctl_cli.text import columns

_BAD = frozenset({"emerg", "alert", "crit", "critical", "err", "error"})


def logs_text(result: LogsResult, *, width: int | None) -> str:
    """Return lines and events by time, one per line. `event`: recorded by clusterctl."""
    rows = [_row(one) for one in result.joined]
    if not rows:
        return f"no line and no event from {_time(result.window.since)} to {_time(result.window.until)} UTC"
    return columns(("WHEN (UTC)", "FROM", "WHAT"), rows, width=width)


def _row(one: LogLine | Event) -> tuple[str, str, str]:
    if isinstance(one, Event):
        return _time(one.at), "event", f"{one.kind.value}: {one.payload}"
    level = f"{one.level} " if one.level in _BAD else ""
    return _time(one.at), "log", f"{level}{one.unit}: {one.text}"


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def logs_json(result: LogsResult) -> dict[str, Any]:
    """Return the document of `logs --json`."""
    return {
        "node": result.node,
        "since": result.window.since.isoformat(),
        "until": result.window.until.isoformat(),
        "sources": [_source_json(source) for source in result.sources],
        "entries": [_entry_json(one) for one in result.joined],
        "events_cut": result.cut_events,
    }


def _source_json(source: LogSource) -> dict[str, Any]:
    return {
        "source": source.name,
        "read": not source.problem,
        "problem": source.problem,
        "cut": source.read.cut,
        "unreadable": source.read.unreadable,
        "complete": source.read.complete,
    }


def _entry_json(one: LogLine | Event) -> dict[str, Any]:
    if isinstance(one, Event):
        return {"at": one.at.isoformat(), "event": event_json(one)}
    return {"at": one.at.isoformat(), "line": {"unit": one.unit, "level": one.level, "text": one.text}}
