"""Returns of parts to their vendors as text. Pure."""

from __future__ import annotations

from datetime import datetime

from clusterctl.fleet.reporting.rma import Rma
from clusterctl_cli.text import ago

HEAD = ("SERIAL", "CASE", "STAGE", "OPENED", "DUE", "PART")


def rma_row(one: Rma, now: datetime) -> tuple[str, ...]:
    """Return a return as a row below `HEAD`."""
    return one.serial, one.case, one.stage.value, ago(one.opened_at, now), _due(one, now), _part(one)


def rma_line(one: Rma, now: datetime) -> str:
    """Return a return as one line of a report: part, case, stage, age, due date."""
    stage = f"{one.stage.value} {ago(one.since, now)}"
    new = f", replacement {one.new}" if one.new else ""
    due = f", due {_due(one, now)}" if one.due else ""
    return f"{_part(one)}, serial {one.serial}: case {one.case}, {stage}, opened {ago(one.opened_at, now)}{due}{new}"


def _part(one: Rma) -> str:
    return f"{one.part} of {one.node}" if one.part and one.node else one.part or one.node or "part"


def _due(one: Rma, now: datetime) -> str:
    if one.due is None:
        return ""
    late = f", {(now - one.due).days} d late" if one.late(now) else ""
    return f"{one.due:%Y-%m-%d}{late}"
