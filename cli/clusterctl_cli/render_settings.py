"""Settings and plans for them, as text and JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterctl.fleet.settings.drift import Drift, Split, Stand, not_right, splits, verdict
from clusterctl.operations.settings import BaselineCheck, SettingsCheck
from clusterctl_cli.formats import print_document
from clusterctl_cli.output import failure_json
from clusterctl_cli.text import columns, echo, terminal_width

_HEAD = ("NODE", "WHAT", "IS", "WANTED", "NEXT BOOT", "NOTE")


def check_json(check: SettingsCheck) -> dict[str, Any]:
    """Return `{"nodes": [{"name":…, "sku":…, "verdict":…, "drift": […], "error":…}], "not_asked": {…},
    "splits": […]}`.
    """
    return {
        "nodes": [
            {
                "name": one.name,
                "sku": one.sku,
                "verdict": verdict(one.drifts).value,
                "drift": [_drift_json(each) for each in not_right(one.drifts)],
                "error": failure_json(one.failure) if one.failure else None,
            }
            for one in check.nodes
        ],
        "not_asked": dict(check.skipped),
        "splits": [
            {"sku": each.sku, "setting": each.what, "most": each.most, "count": each.count, "others": dict(each.others)}
            for each in _splits(check.nodes)
        ],
    }


def check_text(check: SettingsCheck) -> str:
    """Return what is not right, one line each; then where machines of one kind differ; then how many are right."""
    rows = [row for one in check.nodes for row in _rows(one)]
    lines = [columns(_HEAD, rows, width=terminal_width())] if rows else []
    lines += [f"differ: {each}" for each in _splits(check.nodes)]
    lines += [f"not asked: {name}: {why}" for name, why in check.skipped.items()]
    right = sum(1 for one in check.nodes if one.failure is None and not not_right(one.drifts))
    return "\n".join([*lines, f"{right} of {len(check.nodes)} nodes are as their baseline has them"])


def print_check(check: SettingsCheck, *, as_json: bool) -> None:
    """Print how machines stand to their baselines."""
    if as_json:
        print_document(check_json(check))
    else:
        echo(check_text(check))


def _rows(one: BaselineCheck) -> list[tuple[str, ...]]:
    if one.failure is not None:
        return [(one.name, "-", "-", "-", "-", str(one.failure))]
    return [
        (one.name, each.what, each.found or "not reported", each.wants or "-", each.pending or "-", each.note)
        for each in not_right(one.drifts)
    ]


def _drift_json(one: Drift) -> dict[str, Any]:
    return {
        "aspect": one.aspect.value,
        "setting": one.what,
        "found": one.found or None,
        "expected": one.wants,
        "pending": one.pending or None,
        "stand": one.stand.value,
        "by_hand": one.by_hand and one.stand is not Stand.RIGHT,
        "note": one.note,
    }


def _splits(nodes: Sequence[BaselineCheck]) -> tuple[Split, ...]:
    return splits((one.name, one.sku, one.drifts) for one in nodes)
