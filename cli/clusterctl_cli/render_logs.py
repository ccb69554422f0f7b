"""A node's log and the journal's events of the node, as text."""

from __future__ import annotations

from datetime import datetime

from clusterctl.fleet.event import Event
from clusterctl.formats.node_logs import LogLine
from clusterctl.operations.node_logs import LogsResult
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
