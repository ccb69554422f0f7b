"""What an operator may order for a node in its present state: checks that several decisions share."""

from __future__ import annotations

import enum
from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from clusterctl.fleet.acts import SETTINGS_ACTS, Act
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Serial, Stage
from clusterctl.fleet.stages import Move, possible

if TYPE_CHECKING:
    from clusterctl.fleet.state import NodeState


class PowerOrder(enum.Enum):
    """What may be done to a machine's power."""

    ON = "on"
    OFF = "off"
    CYCLE = "cycle"
    AC_CYCLE = "ac-cycle"

    @property
    def act(self) -> Act:
        """Return the act that carries it out."""
        return {
            PowerOrder.ON: Act.POWER_ON,
            PowerOrder.OFF: Act.POWER_OFF,
            PowerOrder.CYCLE: Act.POWER_CYCLE,
            PowerOrder.AC_CYCLE: Act.POWER_AC_CYCLE,
        }[self]


def require_living(node: NodeState) -> None:
    """Raise `UsageError` for a retired node: the stage table has no way back."""
    if not possible(node.stage, Move.RETIRE):
        remedy = f"if its machine is back under another name: clusterctl merge NAME --serial SERIAL --from {node.name}"
        raise UsageError(f"it is retired for good: {node.cause}", where=node.name, remedy=remedy)


def require_serial(node: NodeState) -> Serial:
    """Return the serial of the node's machine. Raise `UsageError` where it is not known, or the node is retired."""
    require_living(node)
    if node.serial is None:
        raise UsageError(
            "its serial is not known: nothing would show that it is the right machine",
            where=node.name,
            remedy=f"clusterctl discover --limit {node.name} first",
        )
    return node.serial


def require_no_hold(node: NodeState, now: datetime) -> None:
    """Raise `UsageError` where an operator holds the node."""
    if node.held(now):
        remedy = f"clusterctl release {node.name} --reason '…' first"
        raise UsageError(f"it is {node.hold}: no step may touch it", where=node.name, remedy=remedy)


def require_no_open_act(node: NodeState, own: Collection[Act] = ()) -> None:
    """Raise `UsageError` where an act is open that is none of `own`, which the same command may have begun."""
    foreign = [act.act.value for act in node.open_acts if act.act not in own]
    if foreign:
        remedy = f"let that end, or run it again: clusterctl nodes {node.name} shows what it was"
        raise UsageError(f"{foreign[0]} was begun on it and is not over", where=node.name, remedy=remedy)


def require_out_of_pool(node: NodeState, now: datetime, remedy: str) -> None:
    """Raise `UsageError` where the node is gold and not held."""
    if node.in_pool(now):
        raise UsageError("it is gold and in the pool: it may run a job", where=node.name, remedy=remedy)


def power_permitted(node: NodeState, order: PowerOrder, now: datetime) -> Serial:
    """Return the serial of the machine. Raise `UsageError` where its power may not be changed so."""
    serial = require_serial(node)
    if order is not PowerOrder.ON:
        hold = f"clusterctl hold {node.name} --reason '…' takes it out; let its work end, then run this again"
        require_out_of_pool(node, now, hold)
    return serial


def settings_permitted(
    node: NodeState, now: datetime, *, from_pool: bool, acts: Collection[Act] = SETTINGS_ACTS
) -> Serial:
    """Return the serial of the machine for a change of its BIOS and firmware. Raise `UsageError` where it may be busy.

    `from_pool`: a gold node may be taken out of the pool for it. `acts`: those which the same command may have begun.
    """
    serial = require_serial(node)
    require_no_open_act(node, acts)
    idle = node.stage in (Stage.DISCOVERED, Stage.QUARANTINED)
    if idle or node.held(now) or node.stopped_at is not None:
        return serial
    if node.stage is not Stage.GOLD:
        remedy = f"clusterctl hold {node.name} --reason '…' first; release it afterwards"
        raise UsageError(f"it is {node.stage.value}, on its way to the next step", where=node.name, remedy=remedy)
    if not from_pool:
        hold = f"let its work end, then clusterctl hold {node.name} --reason '…', or add --from-pool"
        require_out_of_pool(node, now, hold)
    return serial
