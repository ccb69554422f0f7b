"""Whose event log a person may have cleared."""

from __future__ import annotations

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.orders import living
from clusterctl.fleet.state import NodeState


def permitted(node: NodeState) -> Serial:
    """The serial of the machine whose log it is; raises `UsageError` where that is not known, or the node retired."""
    living(node)
    if node.serial is None:
        raise UsageError(
            "its serial is not known: nothing would show that it is the right machine",
            where=node.name,
            remedy=f"clusterctl discover --limit {node.name} first",
        )
    return node.serial
