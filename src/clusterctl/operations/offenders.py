"""Machines and parts that failed repeatedly, by the journal, and sentences about them.

Imports no check: `why` of one node starts with this module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.hardware.parts import serials_in
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.reporting.offenders import (
    ENDS,
    NONE,
    OFFENCE,
    WINDOW,
    BadPart,
    Offence,
    Offender,
    Offenders,
    offenders,
)
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.context import SiteContext


def known_offenders(context: SiteContext, serials: Iterable[Serial | None] | None = None) -> Offenders:
    """Return the machines and parts that failed repeatedly, by the journal.

    serials  those of the nodes, of a caller that knows them; by default those of the journal, which takes a second for
             thousands
    """
    now = CLOCK.now()
    begun = list(context.journal.recent((OFFENCE,), now - WINDOW))
    if not begun:
        return NONE
    ended = context.journal.recent(ENDS, now - WINDOW, {event.subject for event in begun})
    events = sorted((*begun, *ended), key=lambda event: event.seq)
    known = serials if serials is not None else (node.serial for node in context.journal.summaries())
    machines = {serial for serial in known if serial}
    return offenders(events, machines, now)


def repeated(context: SiteContext, node: NodeState, fleet: Sequence[NodeSummary] | None = None) -> list[str]:
    """Return sentences about repeated failures of the node, and of its parts in this or in other machines.

    fleet  the nodes, of a caller that knows them; by default those of the journal
    """
    found = known_offenders(context, None if fleet is None else (one.serial for one in fleet))
    nodes = fleet if fleet is not None else context.journal.summaries() if found.parts else ()
    return repeated_among(found, node, nodes)


def repeated_among(found: Offenders, node: NodeState, nodes: Sequence[NodeSummary]) -> list[str]:
    """Return the same sentences, of a caller that knows the offenders and the nodes."""
    offender, parts = found.of(node.id), found.parts_in(node.id, serials_in(node))
    names = {one.id: one.name for one in nodes} if parts else {}
    machine = [f"quarantined {offender_text(offender)}"] if offender else []
    return machine + [part_text(part, names) for part in parts]


def offender_text(one: Offender) -> str:
    """Return `3 times in 28 days, 6 d out: gpu_ecc on GPU 3 twice, hca_link on mlx5_1`."""
    times = Counter(_what(offence) for offence in one.offences)
    what = ", ".join(f"{name} {count} times" if count > 1 else name for name, count in times.most_common())
    hours = int(one.out.total_seconds() // 3600)
    out = f"{hours // 24} d {hours % 24} h" if hours >= 24 else f"{hours} h"
    return f"{len(one.offences)} times in {WINDOW.days} days, {out} out: {what}"


def part_text(part: BadPart, names: Mapping[NodeId, str]) -> str:
    """Return `part 1653 … failed 2 times, in 2 machines: node001 (gpu_ecc, 2026-11-02), node007 (xid, 2026-11-20)`."""
    where = ", ".join(f"{names.get(o.node, o.node)} ({_what(o)}, {o.at:%Y-%m-%d})" for o in part.offences)
    machines = f", in {len(part.nodes)} machines" if len(part.nodes) > 1 else ""
    return f"part {part.serial} failed {len(part.offences)} times{machines}: {where}"


def _what(offence: Offence) -> str:
    found_by = "an operator's decision" if offence.by_operator else offence.check
    return f"{found_by} on {offence.subject}" if offence.subject not in ("", "node") else found_by
