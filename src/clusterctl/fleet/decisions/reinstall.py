"""When an operator may order that a node gets its OS again."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clusterctl.fleet.acts import INSTALL_ACTS, Act
from clusterctl.fleet.decisions.permissions import (
    require_living,
    require_no_hold,
    require_no_open_act,
    require_out_of_pool,
)
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import NewEvent, node_event
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Inventory, Step
from clusterctl.fleet.payloads.decisions import ReinstallOrdered
from clusterctl.fleet.stages import Move, possible

if TYPE_CHECKING:
    from clusterctl.fleet.state import NodeState


def reinstallable(node: NodeState, now: datetime, *, from_pool: bool) -> None:
    """Raise `UsageError` where the node's OS may not be replaced.

    `from_pool`: a gold node may be taken out of the pool for it.
    """
    require_living(node)
    _require_known(node)
    require_no_hold(node, now)
    _require_discovered(node)
    require_no_open_act(node, INSTALL_ACTS)
    if not from_pool:
        require_out_of_pool(node, now, "let its work end, then add --from-pool")


def check_same(node: NodeState, seen: Inventory) -> None:
    """Raise `EdgeError` unless the BMC reports the node's serial, and its root disk where the BMC names that."""
    if seen.serial != node.serial:
        raise EdgeError(
            f"the machine with serial {seen.serial} answers at {node.bmc}, not {node.serial}: nothing was changed",
            where=node.name,
            remedy=f"find out which machine stands there; clusterctl merge {node.name} if it was swapped",
        )
    if (
        node.root_rule is None
        and seen.drives is not None
        and node.root_disk not in {drive.serial for drive in seen.drives}
    ):
        raise EdgeError(
            f"its root disk {node.root_disk} is no longer there: nothing was changed",
            where=node.name,
            remedy=f"clusterctl quarantine {node.name} --step discover, release and discover it, then install it",
        )


def ordered(node: NodeState, reason: str, evidence: tuple[Digest, ...]) -> NewEvent:
    """Return the order to reinstall: every later run installs the node. `evidence` proves which machine is meant."""
    payload = ReinstallOrdered(reason=reason, serial=node.serial or "", root_disk=node.root_disk or "", was=node.stage)
    return node_event(node.id, payload, evidence)


def _require_known(node: NodeState) -> None:
    """Require what identifies the machine and its OS: without it there is no OS of ours to replace."""
    if not (node.serial and (node.root_disk or node.root_rule)):
        remedy = f"clusterctl discover --limit {node.name} first"
        raise UsageError("its serial or its root disk is not known", where=node.name, remedy=remedy)
    if node.intent(Act.INSTALL_START) is None:
        remedy = f"clusterctl install --limit {node.name}"
        message = "clusterctl has never installed it: there is nothing to replace"
        raise UsageError(message, where=node.name, remedy=remedy)


def _require_discovered(node: NodeState) -> None:
    if node.stopped_by:
        remedy = f"clusterctl release {node.name} --reason '…' first"
        raise UsageError(f"{node.stopped_by} took it out: {node.cause}", where=node.name, remedy=remedy)
    order = list(Step)
    early = node.stopped_at is not None and order.index(node.stopped_at) < order.index(Step.INSTALL)
    if early or not possible(node.stage, Move.REINSTALL):
        remedy = f"clusterctl why {node.name}; it must pass discover before anything is installed on it"
        raise UsageError("its last discover did not pass", where=node.name, remedy=remedy)
