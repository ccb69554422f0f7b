"""When a machine's drives may be erased, and when they are known to be: decided on what was seen. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.fleet.decisions.identity import ERASE
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.node import Drive, Inventory
from clusterctl.fleet.state import NodeState
from clusterctl.ports import InstallState, InstallStatus

POWER_OFF = "retire.power_off"
ERASING, ERASED, FAILED = "erasing", "erased", "failed"
"""How the journal's word on an erase begins."""
ERASABLE = (InstallState.INSTALLED, InstallState.FAILED)
BUSY = (InstallState.INSTALLING, InstallState.PREPARING, InstallState.RELEASING)


def erasing_seen(events: Iterable[Event]) -> bool:
    """Whether the last erase that was intended was seen to go on: only then does a released machine mean erased.

    What was done to the machine afterwards, and another machine in its place, make that void.
    """
    seen = False
    for event in events:
        act = event.data.get("act", "")
        if event.kind is Kind.ACT_OBSERVED and act == ERASE:
            seen = event.data["result"].startswith((ERASING, ERASED))
        elif event.kind is Kind.NODE_MERGED or (event.kind is Kind.ACT_INTENDED and act != POWER_OFF):
            seen = False
    return seen


def check_same(node: NodeState, seen: Inventory) -> None:
    """Raise `EdgeError` unless the BMC shows the node's serial, and the drives that its last discover has seen."""
    if seen.serial != node.serial:
        raise EdgeError(
            f"the machine with serial {seen.serial} answers at {node.bmc}, not {node.serial}: nothing was erased",
            where=node.name,
            remedy="find out which machine stands there; clusterctl merge if it was swapped",
        )
    known = node.inventory.drives if node.inventory is not None else None
    if known is None or seen.drives is None or _serials(known) != _serials(seen.drives):
        raise EdgeError(
            "its drives are not those that were shown: nothing was erased",
            where=node.name,
            remedy=f"clusterctl quarantine {node.name} --step discover, release and discover it, then look again",
        )


def check_erasable(node: NodeState, status: InstallStatus) -> None:
    """Raise `EdgeError` where the installer could not erase it. Given back and never seen erasing is not erased."""
    if status.state in BUSY:
        raise EdgeError(
            f"the installer is busy with it ({status.detail})", where=node.name, remedy="wait until it has finished"
        )
    if status.state not in ERASABLE:
        raise EdgeError(
            f"the installer erases only what it has installed ({status.detail or status.state.value}), and nobody has "
            "seen it erase this one",
            where=node.name,
            remedy="install it and retire it again, or erase its drives by hand and retire it without --wipe",
        )


def erase_failed(node: NodeState, status: InstallStatus) -> EdgeError:
    return EdgeError(
        f"its drives are not erased: {status.detail or status.state.value}",
        where=node.name,
        remedy=f"replace or destroy the drive that fails, then clusterctl retire {node.name} --wipe again",
    )


def _serials(drives: Iterable[Drive]) -> list[str]:
    return sorted(drive.serial or drive.slot for drive in drives)
