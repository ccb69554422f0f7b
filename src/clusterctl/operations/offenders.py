"""Repeat offenders of the site, as its journal tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.hardware.parts import serials_in
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.reporting.offenders import KINDS, WINDOW, BadPart, Offence, Offender, Offenders, offenders
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext


def known_offenders(context: SiteContext) -> Offenders:
    now = CLOCK.now()
    machines = {node.serial for node in context.journal.summaries() if node.serial}
    return offenders(context.journal.recent(KINDS, now - WINDOW), machines, now)


def repeated(context: SiteContext, node: NodeState) -> list[str]:
    """What the node did again and again, and what parts in it did, here or in other machines; none where nothing."""
    found = known_offenders(context)
    offender, parts = found.of(node.id), found.parts_in(node.id, serials_in(node))
    names = {one.id: one.name for one in context.journal.summaries()} if parts else {}
    machine = [f"quarantined {offender_text(offender)}"] if offender else []
    return machine + [part_text(part, names) for part in parts]


def offender_text(one: Offender) -> str:
    """`3 times in 28 days, 6 d out: gpu_ecc on GPU 3 twice, hca_link on mlx5_1`."""
    times = Counter(_what(offence) for offence in one.offences)
    what = ", ".join(f"{name} {count} times" if count > 1 else name for name, count in times.most_common())
    return f"{len(one.offences)} times in {WINDOW.days} days, {_spell(one.out)} out: {what}"


def part_text(part: BadPart, names: Mapping[NodeId, str]) -> str:
    """`part 1653 … failed 2 times, in 2 machines: node001 (gpu_ecc, 2026-11-02), node007 (xid, 2026-11-20)`."""
    where = ", ".join(f"{names.get(o.node, o.node)} ({_what(o)}, {o.at:%Y-%m-%d})" for o in part.offences)
    machines = f", in {len(part.nodes)} machines" if len(part.nodes) > 1 else ""
    return f"part {part.serial} failed {len(part.offences)} times{machines}: {where}"


def _what(offence: Offence) -> str:
    if offence.check == "person":
        return "a person's word"
    return f"{offence.check} on {offence.subject}" if offence.subject not in ("", "node") else offence.check


def _spell(out: timedelta) -> str:
    hours = int(out.total_seconds() // 3600)
    return f"{hours // 24} d {hours % 24} h" if hours >= 24 else f"{hours} h"
