"""Repeat offenders as text. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.reporting.offenders import WINDOW, Offence, Offenders
from clusterctl.operations.offenders import offender_text, part_text


def offenders_lines(found: Offenders, names: Mapping[NodeId, str]) -> list[str]:
    """Return the lines of the acceptance report; none where there are none."""
    nodes = [f"{names.get(one.node, one.node)}: {offender_text(one)}" for one in found.nodes]
    return [*nodes, *(part_text(part, names) for part in found.parts)]


def offenders_json(found: Offenders, names: Mapping[NodeId, str]) -> dict[str, Any]:
    """Return `{"window_days":…, "nodes":[{"name":…, "out_s":…, "offences":[…]}], "parts":[{"serial":…,
    "offences":[…]}]}`.
    """
    return {
        "window_days": WINDOW.days,
        "nodes": [
            {
                "name": names.get(one.node, one.node),
                "out_s": int(one.out.total_seconds()),
                "offences": [_offence_json(offence, names) for offence in one.offences],
            }
            for one in found.nodes
        ],
        "parts": [
            {"serial": part.serial, "offences": [_offence_json(offence, names) for offence in part.offences]}
            for part in found.parts
        ],
    }


def _offence_json(offence: Offence, names: Mapping[NodeId, str]) -> dict[str, str]:
    return {
        "name": names.get(offence.node, offence.node),
        "at": offence.at.isoformat(),
        "check": offence.check,
        "subject": offence.subject,
        "serial": offence.serial,
        "cause": offence.cause,
    }
