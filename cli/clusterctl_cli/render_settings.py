"""Settings and plans for them, as people and programs read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.settings.drift import Drift, Split, Stand, in_words, not_right, splits, verdict
from clusterctl.fleet.settings.plan import Todo
from clusterctl.steps.settings.read_baseline import BaselineReading
from clusterctl_cli import render

_HEAD = ("NODE", "WHAT", "IS", "WANTED", "NEXT BOOT", "NOTE")


def check_json(looked: Sequence[BaselineReading], skus: Mapping[str, str], passed: Mapping[str, str]) -> dict[str, Any]:
    """`{"nodes": [{"name":…, "sku":…, "verdict":…, "drift": […], "error":…}], "not_asked": {…}, "splits": […]}`."""
    return {
        "nodes": [
            {
                "name": one.name,
                "sku": skus[one.name],
                "verdict": verdict(one.drifts).value,
                "drift": [_drift_json(each) for each in not_right(one.drifts)],
                "error": error_json(one.error),
            }
            for one in looked
        ],
        "not_asked": dict(passed),
        "splits": [
            {"sku": each.sku, "what": each.what, "most": each.most, "count": each.count, "others": dict(each.others)}
            for each in _splits(looked, skus)
        ],
    }


def check_text(looked: Sequence[BaselineReading], skus: Mapping[str, str], passed: Mapping[str, str]) -> str:
    """What is not right, a line each; then where machines of one kind differ; then how many are right."""
    rows = [row for one in looked for row in _rows(one)]
    lines = [render.columns(_HEAD, rows)] if rows else []
    lines += [f"differ: {each}" for each in _splits(looked, skus)]
    lines += [f"not asked: {name}: {why}" for name, why in passed.items()]
    right = sum(1 for one in looked if one.error is None and not not_right(one.drifts))
    return "\n".join([*lines, f"{right} of {len(looked)} nodes are as their baseline has them"])


def plan_text(plans: Mapping[str, Todo], waves: Sequence[Sequence[str]], left: Mapping[str, str]) -> str:
    """Wave by wave what would be done to whom; then who is left alone, and why."""
    lines = []
    for number, wave in enumerate(waves, start=1):
        lines.append(f"wave {number}:")
        for name in wave:
            lines.append(f"  {name}: {'; '.join(plan_words(plans[name]))}")
            lines += [f"    by hand: {in_words(one)}" for one in plans[name].by_hand]
    lines += [f"left alone: {name}: {why}" for name, why in left.items()]
    return "\n".join(lines) or "nothing to do"


def plan_words(plan: Todo) -> list[str]:
    """In the order in which it is done."""
    words = [f"BMC firmware {wish.component} {wish.wants}" for wish in plan.bmc]
    words += [f"firmware {wish.component} {wish.wants}" for wish in plan.host]
    words += [f"{name} = {value}" for name, value in (plan.attributes or {}).items()]
    return [*words, "one reboot"] if plan.reboots else words


def error_json(error: ClusterctlError | None) -> dict[str, str] | None:
    if error is None:
        return None
    return {"kind": error.kind, "message": error.message, "where": error.where, "remedy": error.remedy}


def _rows(one: BaselineReading) -> list[tuple[str, ...]]:
    if one.error is not None:
        return [(one.name, "-", "-", "-", "-", str(one.error))]
    return [
        (one.name, each.what, each.found or "not told", each.wants or "-", each.pending or "-", each.note)
        for each in not_right(one.drifts)
    ]


def _drift_json(one: Drift) -> dict[str, Any]:
    return {
        "aspect": one.aspect.value,
        "what": one.what,
        "is": one.found or None,
        "wants": one.wants,
        "pending": one.pending or None,
        "stand": one.stand.value,
        "by_hand": one.by_hand and one.stand is not Stand.RIGHT,
        "note": one.note,
    }


def _splits(looked: Sequence[BaselineReading], skus: Mapping[str, str]) -> tuple[Split, ...]:
    return splits((one.name, skus[one.name], one.drifts) for one in looked)
