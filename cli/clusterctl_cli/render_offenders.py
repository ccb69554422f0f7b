"""Repeat offenders in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.reporting.offenders import WINDOW, BadPart, Offence, Offender, Offenders


def offender_words(one: Offender) -> str:
    """`3 times in 28 days, 6 d out: gpu_ecc on GPU 3 twice, hca_link on mlx5_1`."""
    times = Counter(_what(offence) for offence in one.offences)
    what = ", ".join(f"{name} {count} times" if count > 1 else name for name, count in times.most_common())
    return f"{len(one.offences)} times in {WINDOW.days} days, {_spell(one.out)} out: {what}"


def part_words(part: BadPart, names: Mapping[NodeId, str]) -> str:
    """`part 1653 … failed 2 times, in 2 machines: node001 (gpu_ecc, 2026-11-02), node007 (xid, 2026-11-20)`."""
    where = ", ".join(f"{names.get(o.node, o.node)} ({_what(o)}, {o.at:%Y-%m-%d})" for o in part.offences)
    machines = f", in {len(part.nodes)} machines" if len(part.nodes) > 1 else ""
    return f"part {part.serial} failed {len(part.offences)} times{machines}: {where}"


def offenders_lines(found: Offenders, names: Mapping[NodeId, str]) -> list[str]:
    """Of the acceptance report; none where there are none."""
    nodes = [f"{names.get(one.node, one.node)}: {offender_words(one)}" for one in found.nodes]
    return [*nodes, *(part_words(part, names) for part in found.parts)]


def offenders_json(found: Offenders, names: Mapping[NodeId, str]) -> dict[str, Any]:
    """`{"window_days":…, "nodes":[{"name":…, "out_s":…, "offences":[…]}], "parts":[{"serial":…, "offences":[…]}]}`."""
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


def _what(offence: Offence) -> str:
    if offence.check == "person":
        return "a person's word"
    return f"{offence.check} on {offence.subject}" if offence.subject not in ("", "node") else offence.check


def _spell(out: timedelta) -> str:
    hours = int(out.total_seconds() // 3600)
    return f"{hours // 24} d {hours % 24} h" if hours >= 24 else f"{hours} h"
