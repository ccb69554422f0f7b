"""Installing a node anew, by a person's word: when that may be ordered. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Inventory, Stage, Step

if TYPE_CHECKING:
    from clusterctl.fleet.state import NodeState

START = "install.start"
"""The act of beginning to write an OS, in the journal: an order to install anew is carried out with it."""
REBOOT = "configure.reboot"
"""The act of rebooting a host because its roles ask for it: what is installed anew has left it behind."""
_OWN = "install."
"""How an install's own acts begin."""


def reinstallable(node: NodeState, now: datetime, *, from_pool: bool) -> None:
    """Raise `UsageError` where its OS may not be replaced.

    `from_pool`: a gold node may be taken out of the pool for it.
    """
    for unfit in (_unknown(node), _held(node, now), _at_work(node, now, from_pool=from_pool)):
        if unfit is not None:
            raise unfit


def check_same(node: NodeState, seen: Inventory) -> None:
    """Raise `EdgeError` unless the BMC tells the node's serial now, and its root disk among the drives (where it tells
    any).
    """
    if seen.serial != node.serial:
        raise EdgeError(
            f"the machine with serial {seen.serial} answers at {node.bmc}, not {node.serial}: nothing was given up",
            where=node.name,
            remedy=f"find out which machine stands there; clusterctl merge {node.name} if it was swapped",
        )
    if seen.drives is not None and node.root_disk not in {drive.serial for drive in seen.drives}:
        raise EdgeError(
            f"its root disk {node.root_disk} is no longer there: nothing was given up",
            where=node.name,
            remedy=f"clusterctl quarantine {node.name} --step discover, release and discover it, then install it",
        )


def ordered(node: NodeState, reason: str, evidence: tuple[Digest, ...]) -> NewEvent:
    """From here on every run installs it anew; `evidence`: what proves that it is the machine that is meant."""
    data = {"reason": reason, "serial": node.serial, "root_disk": node.root_disk, "was": node.stage.value}
    return NewEvent("node", node.id, Kind.REINSTALL_ORDERED, data, evidence)


def _unknown(node: NodeState) -> UsageError | None:
    """There is no OS of ours to replace, or nothing to recognise the machine by."""
    name = node.name
    if node.stage is Stage.RETIRED:
        return UsageError(f"it is out of the site's life: {node.cause}", where=name, remedy="merge it back first")
    if not (node.serial and node.root_disk):
        remedy = f"clusterctl discover --limit {name} first"
        return UsageError("its serial or its root disk is not known", where=name, remedy=remedy)
    if not node.acts.get(START):
        remedy = f"clusterctl install --limit {name}"
        return UsageError("clusterctl has never installed it: there is nothing to replace", where=name, remedy=remedy)
    return None


def _held(node: NodeState, now: datetime) -> UsageError | None:
    name = node.name
    if node.held(now):
        remedy = f"clusterctl release {name} --reason '…' first"
        return UsageError(f"it is {node.hold}: no step may touch it", where=name, remedy=remedy)
    if node.stopped_by:
        remedy = f"clusterctl release {name} --reason '…' first"
        return UsageError(f"{node.stopped_by} took it out: {node.cause}", where=name, remedy=remedy)
    order = list(Step)
    early = node.stopped_at is not None and order.index(node.stopped_at) < order.index(Step.INSTALL)
    if early or node.stage is Stage.SEEN:
        remedy = f"clusterctl why {name}; it must pass discover before anything is installed on it"
        return UsageError("its last discover did not pass", where=name, remedy=remedy)
    return None


def _at_work(node: NodeState, now: datetime, *, from_pool: bool) -> UsageError | None:
    name = node.name
    foreign = [act.act for act in node.open_acts if not act.act.startswith(_OWN)]
    if foreign:
        remedy = f"let that end, or run it again: clusterctl nodes {name} shows what it was"
        return UsageError(f"something was begun on it and is not over: {foreign[0]}", where=name, remedy=remedy)
    if node.in_pool(now) and not from_pool:
        remedy = "let its work end, then say --from-pool"
        return UsageError("it is gold and in the pool: somebody may be working on it", where=name, remedy=remedy)
    return None
