"""The downtime of the site's supervised runs, as the journal has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from clusterctl.jobs.downtime import AttemptTime, Downtime, Rate, RunTime, checkpoint_interval, downtime, spares
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_runs import listed

PUBLISHED_RATES = {
    "Meta, RSC-1": 6.50,
    "Meta, RSC-2": 2.34,
}
"""Failures of 1000 node-days: Kokolis et al., arxiv.org/abs/2410.21680."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DowntimeRequest:
    """`since`: runs ordered before are left out; `nodes`: those that plans are made for; None: of the gold pool."""

    since: datetime | None = None
    nodes: int | None = None
    repair_days: float = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DowntimePlan:
    """What follows from a rate of failures (of 1000 node-days): `interval_s` None where no save was measured."""

    source: str
    per_thousand: float
    hours_to_failure: float
    spares: int
    interval_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DowntimeReport:
    """The downtime; `plans` for `nodes` nodes, by the measured rate and by published ones."""

    found: Downtime
    nodes: int
    repair_days: float
    plans: tuple[DowntimePlan, ...]


def report(context: SiteContext, request: DowntimeRequest) -> DowntimeReport:
    """Return the downtime of the runs, and what follows from the rate of failures."""
    runs = [one for one in listed(context) if request.since is None or one.at >= request.since]
    found = downtime(runs)
    gold = sum(node.stage.value == "gold" for node in context.journal.summaries())
    nodes = request.nodes or gold
    measured = found.rate.per_thousand
    rates = {**({"measured": measured} if measured else {}), **PUBLISHED_RATES}
    plans = [_plan(source, rate, nodes, request, found) for source, rate in rates.items() if nodes]
    return DowntimeReport(found=found, nodes=nodes, repair_days=request.repair_days, plans=tuple(plans))


def _plan(source: str, per_thousand: float, nodes: int, request: DowntimeRequest, found: Downtime) -> DowntimePlan:
    daily = per_thousand / 1000
    return DowntimePlan(
        source=source,
        per_thousand=per_thousand,
        hours_to_failure=24 / (nodes * daily),
        spares=spares(nodes, daily, request.repair_days),
        interval_s=checkpoint_interval(found.saving_s, nodes, daily) if found.saving_s else None,
    )


def report_json(found: DowntimeReport) -> Mapping[str, Any]:
    """Return the report as one document. Seconds, unless a name has another unit."""
    rate = found.found.rate
    return {
        "runs": [run_time_json(one) for one in found.found.runs],
        "hardware_share_mean": found.found.hardware_mean,
        "hardware_share_by_gpu_hours": found.found.hardware_weighted,
        "save_seconds": found.found.saving_s,
        "failures": rate.failures,
        "node_days": rate.node_days,
        "failures_per_1000_node_days": rate.per_thousand,
        "node_mttf_days": rate.days,
        "node_mttf_days_low": rate.low,
        "node_mttf_days_high": rate.high,
        "nodes": found.nodes,
        "repair_days": found.repair_days,
        "plans": [
            {
                "rate": one.source,
                "failures_per_1000_node_days": one.per_thousand,
                "hours_to_failure": one.hours_to_failure,
                "spares": one.spares,
                "checkpoint_interval_seconds": one.interval_s,
            }
            for one in found.plans
        ],
    }


def run_time_json(one: RunTime) -> Mapping[str, Any]:
    """Return the times of one run, in seconds."""
    return {
        "name": one.run,
        "nodes": one.nodes,
        "gpus": one.gpus,
        "elapsed": one.elapsed,
        "downtime": one.downtime,
        "hardware": one.hardware,
        "restart": one.restart,
        "wait": sum(attempt.wait for attempt in one.attempts),
        "jobs_without_times": list(one.unknown),
        "attempts": [_attempt_json(attempt) for attempt in one.attempts],
    }


def _attempt_json(one: AttemptTime) -> Mapping[str, Any]:
    names = ("job", "failed", "hardware", "startup", "useful", "saving", "lost", "detection", "shutdown", "wait")
    return {name: getattr(one, name) for name in names}


def report_markdown(found: DowntimeReport, site: str) -> str:
    """Return the report as Markdown."""
    lines = [f"# Downtime of {site}", ""]
    if not found.found.runs:
        lines += ["No supervised run of this time has ended an attempt (`clusterctl job run`).", ""]
    for one in found.found.runs:
        lines += [*_run_lines(one), ""]
    lines += [*_fleet_lines(found), ""]
    return "\n".join(lines)


def _run_lines(one: RunTime) -> list[str]:
    share = f" ({one.downtime / one.elapsed:.1%})" if one.elapsed else ""
    wait = sum(attempt.wait for attempt in one.attempts)
    head = f"Elapsed {_time(one.elapsed)}, downtime {_time(one.downtime)}{share}, waits for nodes {_time(wait)}."
    rows = [
        f"| {a.job} | {_time(a.startup)} | {_time(a.useful)} | {_time(a.saving)} | {_time(a.lost)} "
        f"| {_time(a.detection)} | {_time(a.shutdown)} | {_time(a.wait)} | {_failed(a)} |"
        for a in one.attempts
    ]
    table = [
        "| job | start-up | useful | saves | lost | detection | shutdown | wait | failure |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    unknown = [f"Times are not known of job {', '.join(one.unknown)}."] if one.unknown else []
    return [f"## {one.run}", "", head, "", *table, *rows, *(["", *unknown] if unknown else [])]


def _failed(one: AttemptTime) -> str:
    return ("hardware" if one.hardware else "other") if one.failed else "none"


def _fleet_lines(found: DowntimeReport) -> list[str]:
    rate = found.found.rate
    lines = ["## All runs", ""]
    if found.found.hardware_mean is not None and found.found.hardware_weighted is not None:
        mean, weighted = found.found.hardware_mean, found.found.hardware_weighted
        lines.append(f"- Downtime by hardware: {mean:.2%} as the mean over runs, {weighted:.2%} by GPU hours.")
    lines.append(f"- {rate.failures} failures of hardware in {rate.node_days:.2f} node-days.")
    lines.append(f"- Mean time to failure of a node: {_mean_time(rate)}.")
    if found.plans:
        lines += ["", f"For {found.nodes} nodes, with repairs of {found.repair_days:g} days:", ""]
        lines += [
            "| rate | of 1000 node-days | hours to a failure | spares (99 %) | checkpoint every |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {one.source} | {one.per_thousand:.2f} | {one.hours_to_failure:.1f} | {one.spares} "
            f"| {_time(one.interval_s) if one.interval_s else 'no save was measured'} |"
            for one in found.plans
        ]
    return lines


def _mean_time(rate: Rate) -> str:
    if rate.low is None:
        return "not known"
    if rate.days is None:
        return f"more than {rate.low:.1f} days (95 %)"
    high = f"{rate.high:.1f}" if rate.high is not None else "no bound"
    return f"{rate.days:.1f} days (95 %: {rate.low:.1f} to {high})"


def _time(seconds: float) -> str:
    """Return a duration that stays short: `12 s`, `3.5 min`, `7.2 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
