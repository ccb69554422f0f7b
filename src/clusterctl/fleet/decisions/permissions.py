"""Whose event log a person may have cleared."""

from __future__ import annotations

import enum
from datetime import datetime

from clusterctl.fleet.decisions.decision import living
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.state import NodeState


def log_permitted(node: NodeState) -> Serial:
    """The serial of the machine whose log it is; raises `UsageError` where that is not known, or the node retired."""
    living(node)
    if node.serial is None:
        raise UsageError(
            "its serial is not known: nothing would show that it is the right machine",
            where=node.name,
            remedy=f"clusterctl discover --limit {node.name} first",
        )
    return node.serial


class PowerOrder(enum.Enum):
    ON = "on"
    OFF = "off"
    CYCLE = "cycle"
    AC_CYCLE = "ac-cycle"

    @property
    def act(self) -> str:
        """Its name in the journal."""
        return f"power.{self.value.replace('-', '_')}"


def power_permitted(node: NodeState, order: PowerOrder, now: datetime) -> Serial:
    """The serial of the machine that it may be done to; raises `UsageError` where it may not."""
    living(node)
    if node.serial is None:
        raise UsageError(
            "its serial is not known: nothing would show that it is the right machine",
            where=node.name,
            remedy=f"clusterctl discover --limit {node.name} first",
        )
    if order is not PowerOrder.ON and node.in_pool(now):
        raise UsageError(
            "it is gold and in the pool: somebody may be working on it",
            where=node.name,
            remedy=f"clusterctl hold {node.name} --reason '…' takes it out; let its work end, then ask again",
        )
    return node.serial
