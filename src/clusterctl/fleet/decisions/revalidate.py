"""Revalidation of a node, from the first step that a repair or a night affects. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.decisions.decision import Order, checked_reason
from clusterctl.fleet.decisions.permissions import require_living, require_no_hold, require_no_open_act
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.hardware.parts import part_named
from clusterctl.fleet.node import RevalidationOrigin, Stage, Step
from clusterctl.fleet.payloads.decisions import RevalidationOrdered
from clusterctl.fleet.stages import BEFORE
from clusterctl.fleet.state import NodeState, Revalidation

ENDANGERED = ("gpu_count", "gpu_ecc", "pcie_width", "nvlink", "hca_count", "hca_link")
"""Checks of parts that may be loose after a chassis was open, whatever was repaired: every PCIe link."""
_KINDS = {
    "gpu": Step.DISCOVER,
    "hca": Step.DISCOVER,
    "mlx5_": Step.DISCOVER,
    "nic": Step.DISCOVER,
    "drive": Step.DISCOVER,
    "nvme": Step.DISCOVER,
    "dimm": Step.DISCOVER,
    "cpu": Step.DISCOVER,
    "psu": Step.DISCOVER,
    "fan": Step.DISCOVER,
    "riser": Step.DISCOVER,
    "retimer": Step.DISCOVER,
    "nvswitch": Step.DISCOVER,
    "os": Step.CONFIGURE,
    "driver": Step.CONFIGURE,
    "cable": Step.CABLE,
    "transceiver": Step.CABLE,
}
"""Repaired part → the first step that can measure it."""
_OUTSIDE = frozenset({Step.CONFIGURE, Step.CABLE})
"""First steps of repairs that do not open the chassis."""
_MACHINE = frozenset({"board", "motherboard", "mainboard", "chassis", "machine", "node"})


@dataclass(frozen=True, slots=True)
class Repair:
    """The repair that an operator reports: `parts` by their names; `opened`: the chassis was open."""

    parts: tuple[str, ...]
    since: Step | None
    opened: bool


def repair(node: NodeState, names: Sequence[str]) -> Repair:
    """Return the repair of the parts that `names` mean (`gpu3`, a slot, a serial, `cable 5`).

    Raises `UsageError` for an unknown part, and for a board: with another one it is another machine.
    """
    found = [_part(node, name) for name in names]
    steps = sorted({step for _, step in found}, key=list(Step).index)
    return Repair(tuple(str(part) for part, _ in found), steps[0] if steps else None, not _OUTSIDE.issuperset(steps))


def _require_checked(endangered: Iterable[str], checks: Collection[str]) -> None:
    blind = [check for check in endangered if check not in checks]
    if blind:
        raise UsageError(
            f"the chassis was open, and the suite does not look at {', '.join(blind)}",
            where="burnin",
            remedy="name a suite that does, such as bootstrap",
        )


def revalidate(
    node: NodeState, done: Repair, reason: str, checks: Collection[str], now: datetime, *, suite: str = ""
) -> Order:
    """Revalidate from the earliest step that the repair touched, or that stopped the node; else from burn-in on.

    `checks`: what the suite looks at; `suite`: its name, and why it is this one, where it is not the site's. Raises
    `UsageError` where it does not look at what an open chassis endangers, or the node must not be touched.
    """
    require_living(node)
    require_no_hold(node, now)
    require_no_open_act(node)
    if done.opened:
        _require_checked(ENDANGERED, checks)
    since = _since(node, done)
    why = checked_reason(reason) if reason else f"repaired: {', '.join(done.parts)}" if done.parts else "revalidation"
    why += f"; {suite}" if suite else ""
    pool = "; it leaves the gold pool" if node.stage is Stage.GOLD else ""
    opened = ", and the chassis was open" if done.opened else ""
    parts = f"{', '.join(done.parts)} repaired{opened}: " if done.parts else ""
    steps = [step.value for step in list(Step)[list(Step).index(since) :]]
    words = f"{parts}revalidated by {', '.join(steps)}{pool}{_root_disk(node, done)}{f'; {suite}' if suite else ''}"
    return Order(node, (order_event(node, since, Revalidation(RevalidationOrigin.OPERATOR, why), done.parts),), words)


def order_event(node: NodeState, since: Step, why: Revalidation, parts: Sequence[str] = ()) -> NewEvent:
    """Return the event that puts the node before step `since`: earlier reports of that and later steps do not count."""
    payload = RevalidationOrdered(
        since=since, to=BEFORE[since], was=node.stage, origin=why.origin, reason=why.reason, parts=tuple(parts)
    )
    return node_event(node.id, payload)


def _part(node: NodeState, name: str) -> tuple[str, Step]:
    part = part_named(node, name)
    kind = re.match(r"mlx5_|[a-z0-9]*?[a-z]+(?=[\W\d_]|$)", part.subject.casefold())
    word = kind[0] if kind else ""
    if word in _MACHINE:
        remedy = f"clusterctl discover --limit {node.name}, then clusterctl merge {node.name} --serial NEW"
        raise UsageError("with another board or chassis it is another machine", where="--repaired", remedy=remedy)
    known = next((step for prefix, step in _KINDS.items() if word == prefix), None)
    if known is None and not part.slot:
        remedy = f"name its slot or serial, or one of {', '.join(kind.rstrip('_') for kind in _KINDS)}, with a number"
        raise UsageError(f"{node.name} has no part {name!r}", where="--repaired", remedy=remedy)
    return str(part) if part.serial else part.subject, known or Step.DISCOVER


def _since(node: NodeState, done: Repair) -> Step:
    """Return the first step, never beyond the one that stopped it or that it would take next."""
    farthest = node.stopped_at or node.next_step or Step.BURNIN
    return min(done.since or Step.BURNIN, farthest, key=list(Step).index)


def _root_disk(node: NodeState, done: Repair) -> str:
    if not node.root_disk or not any(node.root_disk in part for part in done.parts):
        return ""
    return f"; it was its root disk: once it is discovered, clusterctl install --reinstall {node.name} puts an OS on it"
