"""What `settings apply` would do: to which machines, and what. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.decisions.decision import living
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Serial, Stage
from clusterctl.fleet.settings.baseline import FirmwareWish, Restarts, Value
from clusterctl.fleet.settings.drift import Aspect, Drift, Stand
from clusterctl.fleet.settings.history import ACTS
from clusterctl.fleet.state import NodeState

_IDLE = (Stage.DISCOVERED, Stage.QUARANTINED)
"""Stages in which no OS of ours runs on the machine, or nobody may use it."""


@dataclass(frozen=True, slots=True)
class Todo:
    """What is to be done to one machine, in this order: `bmc` firmware, `host` firmware, `attributes`, one reboot.

    waiting  something waits for a reboot already
    by_hand  what is not as wanted and cannot be mended from here
    """

    bmc: tuple[FirmwareWish, ...] = ()
    host: tuple[FirmwareWish, ...] = ()
    attributes: Mapping[str, Value] | None = None
    waiting: bool = False
    by_hand: tuple[Drift, ...] = ()

    @property
    def reboots(self) -> bool:
        return bool(self.host or self.attributes or self.waiting)

    @property
    def nothing(self) -> bool:
        return not (self.bmc or self.reboots)


def todo(drifts: Iterable[Drift]) -> Todo:
    """From a machine's drift. An image flashes all components of its kind: it is sent once."""
    all_of_it = tuple(drifts)
    wrong = [one for one in all_of_it if one.stand is Stand.WRONG and not one.by_hand]
    wishes = list(dict.fromkeys(one.wish for one in wrong if one.wish is not None))
    attributes = {one.what: one.value for one in wrong if one.aspect is Aspect.BIOS and one.value is not None}
    return Todo(
        bmc=tuple(wish for wish in wishes if wish.restarts is Restarts.BMC),
        host=tuple(wish for wish in wishes if wish.restarts is Restarts.HOST),
        attributes=attributes or None,
        waiting=any(one.stand is Stand.WAITING for one in all_of_it),
        by_hand=tuple(one for one in all_of_it if one.by_hand and one.stand is not Stand.RIGHT),
    )


def permitted(node: NodeState, now: datetime, *, from_pool: bool, acts: Collection[str] = ACTS) -> Serial:
    """The serial of the machine that may be set; `UsageError` where nobody may be sure that it is idle.

    `from_pool`: a gold node may be taken out of the pool for it. `acts`: those which the same command may have begun.
    """
    living(node)
    if node.serial is None:
        remedy = f"clusterctl discover --limit {node.name} first"
        raise UsageError(
            "its serial is not known: nothing would show which machine it is", where=node.name, remedy=remedy
        )
    foreign = [act.act for act in node.open_acts if act.act not in acts]
    if foreign:
        remedy = f"let that end, or run it again: clusterctl nodes {node.name} shows what it was"
        raise UsageError(f"something was begun on it and is not over: {foreign[0]}", where=node.name, remedy=remedy)
    if node.held(now) or node.stopped_at is not None or node.stage in _IDLE:
        return node.serial
    if node.stage is not Stage.GOLD:
        remedy = f"clusterctl hold {node.name} --reason '…' first; release it afterwards"
        raise UsageError(f"it is {node.stage.value}, on its way to the next step", where=node.name, remedy=remedy)
    if not from_pool:
        remedy = f"let its work end, then clusterctl hold {node.name} --reason '…', or say --from-pool"
        raise UsageError("it is gold and in the pool: somebody may be working on it", where=node.name, remedy=remedy)
    return node.serial
