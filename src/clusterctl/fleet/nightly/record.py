"""What a night leaves for monitoring: a record, metrics, and whether one is missing. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from clusterctl.fleet.diagnosis import Diagnosis, ok, warn

NAME = "nightly"


@dataclass(frozen=True, slots=True)
class NightRecord:
    """The last night that began, and the last that came to its end (None: none did). Counts are of the latter."""

    began: datetime
    ended: datetime | None = None
    tested: int = 0
    failed: int = 0
    overdue: int = 0


def gauges(record: NightRecord) -> tuple[tuple[str, str, float], ...]:
    """Return name, help text and value of each metric; a rule of the alert manager compares the time of the last end
    with the current time.
    """
    ended = record.ended.timestamp() if record.ended else 0.0
    return (
        ("nightly_last_begin_timestamp_seconds", "When the last nightly burn-in began.", record.began.timestamp()),
        ("nightly_last_end_timestamp_seconds", "When the last nightly burn-in came to its end; 0: never.", ended),
        ("nightly_tested_nodes", "Nodes that it tested.", record.tested),
        ("nightly_failed_nodes", "Nodes that it tested and that are not gold any more.", record.failed),
        ("nightly_overdue_nodes", "Gold nodes with evidence older than allowed after it.", record.overdue),
    )


def metrics(record: NightRecord) -> str:
    """Return Prometheus's text format (https://prometheus.io/docs/instrumenting/exposition_formats/), for a textfile
    collector.
    """
    return "".join(
        f"# HELP clusterctl_{name} {text}\n# TYPE clusterctl_{name} gauge\nclusterctl_{name} {value:.0f}\n"
        for name, text, value in gauges(record)
    )


def diagnose(record: NightRecord | None, alarm: timedelta, now: datetime) -> Diagnosis:
    """Return a failure where no night came to its end within `alarm`."""
    hours = alarm // timedelta(hours=1)
    remedy = (
        "see that the timer of role burnin_timer runs: systemctl list-timers 'burnin-*', journalctl -u burnin-nightly"
    )
    if record is None:
        return warn(NAME, "no nightly burn-in has ever begun", remedy)
    if record.ended is None:
        return warn(NAME, f"none came to its end yet; the last began {_ago(record.began, now)}", remedy)
    if now - record.ended > alarm:
        return warn(NAME, f"the last came to its end {_ago(record.ended, now)}, above the limit of {hours} h", remedy)
    found = f"the last came to its end {_ago(record.ended, now)}: {record.tested} tested, {record.failed} failed"
    if record.overdue:
        late = f"{found}; of {record.overdue} gold nodes the evidence is too old"
        return warn(NAME, late, "give the nights more room: nightly.percent, nightly.window; clusterctl burnin nightly")
    return ok(NAME, found)


def _ago(then: datetime, now: datetime) -> str:
    hours = max(timedelta(0), now - then) // timedelta(hours=1)
    return f"{hours} h ago"
