"""Logs of nodes and BMCs, figures and parts, as `--json` and the API have them. Keys are only added."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from clusterctl.fleet.event import Event
from clusterctl.fleet.reporting.rma import Rma
from clusterctl.formats.node_logs import LogLine
from clusterctl.operations.bmc_log import BmcLog
from clusterctl.operations.json_documents import event_json, rma_json, value_json
from clusterctl.operations.node_figures import FigurePlace
from clusterctl.operations.node_logs import LogSource, LogsResult


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


def bmc_log_json(node: str, log: BmcLog) -> dict[str, Any]:
    """Return the entries of a BMC's log, the newest first, and how many older ones were left out."""
    entries = [{"at": one.at, "severity": one.severity, "message": one.message} for one in log.entries]
    return {"node": node, "entries": entries, "older": log.older}


def figure_json(place: FigurePlace) -> dict[str, Any]:
    """Return one figure of a node, and where it stands among those of the nodes with the same SKU."""
    return {
        "check": place.check,
        "unit": place.unit,
        "value": place.value,
        "expected": value_json(place.bound),
        "nodes": place.nodes,
        "rank": place.rank,
        "median": place.median,
        "low": place.low,
        "high": place.high,
    }


def part_json(serial: str, events: Iterable[Event], returned: Iterable[Rma], now: datetime) -> dict[str, Any]:
    """Return what the journal knows of a part, whichever nodes it was in, and its returns."""
    return {
        "serial": serial,
        "events": [event_json(event) for event in events],
        "rmas": [rma_json(one, now) for one in returned],
    }
