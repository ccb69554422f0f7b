"""The same as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterctl.fleet.reporting.figures import ReportFigure
from clusterctl.operations.json_documents import finding_json, value_json
from clusterctl.operations.node_case import Charge, NodeCase
from clusterctl_cli.fleet_report.pairs import Pairs


def figures_json(figures: Sequence[ReportFigure]) -> list[dict[str, Any]]:
    """Return `[{"check":…, "sku":…, "unit":…, "expected":…, "median":…, "values":[{"name":…, "subject":…, "value":…,
    "bad":…}]}]`, values ascending.
    """
    return [
        {
            "check": one.check,
            "sku": one.sku,
            "unit": one.unit,
            "expected": value_json(one.bound),
            "median": one.median,
            "values": [{"name": v.node, "subject": v.subject, "value": v.value, "bad": v.bad} for v in one.values],
        }
        for one in figures
    ]


def pairs_json(pairs: Pairs | None) -> dict[str, Any] | None:
    """Return the pairs; None where none was read. `whole` is false where only those of bad nodes were."""
    if pairs is None:
        return None
    return {
        "unit": "Gb/s",
        "at_least": pairs.at_least,
        "measured": pairs.measured,
        "unread": pairs.unread,
        "whole": pairs.whole,
        "slow": [
            {"from": o.source, "to": o.target, "rail": o.rail, "device": o.device, "value": o.value} for o in pairs.slow
        ],
    }


def case_json(case: NodeCase, node: dict[str, Any]) -> dict[str, Any]:
    """Return `node` as `nodes --json` has it, with `machine`, `charges` and `timeline`."""
    moments = [{"at": m.at.isoformat(), "text": m.text, "actor": m.actor, "mark": m.mark} for m in case.moments]
    return node | {"machine": case.machine, "charges": [_charge(c) for c in case.charges], "timeline": moments}


def _charge(charge: Charge) -> dict[str, Any]:
    part = charge.part
    return {
        "finding": finding_json(charge.finding),
        "part": {"name": part.subject, "slot": part.slot, "serial": part.serial, "model": charge.model},
        "limits": [
            {"name": one.name, "value": one.value, "unit": one.unit, "source": one.source} for one in charge.limits
        ],
        "judged_by": charge.judged_by,
        "exhibits": [
            {
                "digest": item.digest,
                "command": item.command,
                "where": item.where,
                "at": item.at.isoformat(),
                "simulated": item.simulated,
                "excerpt": item.excerpt,
            }
            for item in charge.exhibits
        ],
    }
