"""The fabric's own faults, which are no node's, as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

from clusterctl.fleet.durations import utc_text

if TYPE_CHECKING:
    from clusterctl.fleet.payloads.hardware import FabricFault, FabricLinksJudged

_NAMED = 10


def faults_note(faults: Sequence[FabricFault]) -> str:
    """Return one line below a list of nodes; empty where the fabric has none."""
    return f"fabric: {_count(faults)}; clusterctl report has the remedies" if faults else ""


def faults_text(faults: Sequence[FabricFault]) -> str:
    """Return the faults by rack: at most so many, and the number of the others."""
    lines = [f"fabric: {_count(faults)}:"]
    for rack, here in groupby(faults[:_NAMED], key=lambda fault: fault.rack):
        lines.append(f"  rack {rack}" if rack else "  rack unknown")
        lines += [line for fault in here for line in (f"    {fault.cause}", f"      → {fault.action}")]
    if len(faults) > _NAMED:
        lines.append(f"  and {len(faults) - _NAMED} more: clusterctl report names them all")
    return "\n".join(lines)


def faults_section(faults: Sequence[FabricFault]) -> list[str]:
    """Return Markdown for the acceptance report."""
    lines = ["## The fabric, by rack", "", f"{_count(faults)}.", ""] if faults else []
    for rack, here in groupby(faults, key=lambda fault: fault.rack):
        lines += [f"### {rack or 'location unknown'}", ""]
        lines += [line for fault in here for line in (f"- {fault.cause}", f"  - **{fault.action}**")]
        lines.append("")
    return lines


def _count(faults: Sequence[FabricFault]) -> str:
    """Return `2 things to repair on 3 links, no node's fault`."""
    links = sum(fault.links for fault in faults)
    things = f"{len(faults)} thing{'s' if len(faults) != 1 else ''} to repair"
    return f"{things} on {links} link{'s' if links != 1 else ''}, no node's fault"


def links_text(judged: FabricLinksJudged) -> str:
    """Return the health of the links: one line, then the first groups and links that are bad or not proven."""
    named = judged.causes[:_NAMED]
    left = len(judged.causes) - len(named) + judged.more
    return "\n".join((str(judged), *(f"  {cause}" for cause in named), *([f"  and {left} more"] if left else [])))


def links_section(judged: tuple[datetime, FabricLinksJudged] | None) -> list[str]:
    """Return the last judgement of the links as a section of Markdown; none where there is none."""
    if judged is None:
        return []
    at, found = judged
    lines = [f"- {cause}" for cause in found.causes]
    more = [f"- and {found.more} more: clusterctl cable health --since 1d names them all"] if found.more else []
    return ["## Links", "", f"{utc_text(at)}: {found}.", *([found.reason] if found.links and found.reason else []),
            "", *lines, *more, *([""] if lines else [])]  # fmt: skip
