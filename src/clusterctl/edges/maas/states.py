"""MAAS's states as ours. (Here and not in formats/: `InstallState` belongs to the port.)"""

from __future__ import annotations

from clusterctl.formats.maas.machines import MaasEvent, MaasMachine, NodeStatus
from clusterctl.ports import InstallState, InstallStatus

STATES = {
    NodeStatus.NEW: InstallState.ABSENT,
    NodeStatus.COMMISSIONING: InstallState.PREPARING,
    NodeStatus.TESTING: InstallState.PREPARING,
    NodeStatus.READY: InstallState.READY,
    NodeStatus.ALLOCATED: InstallState.READY,
    NodeStatus.DEPLOYING: InstallState.INSTALLING,
    NodeStatus.DEPLOYED: InstallState.INSTALLED,
    NodeStatus.RELEASING: InstallState.RELEASING,
    NodeStatus.DISK_ERASING: InstallState.ERASING,
    NodeStatus.EXITING_RESCUE_MODE: InstallState.RELEASING,
    NodeStatus.FAILED_COMMISSIONING: InstallState.FAILED,
    NodeStatus.FAILED_TESTING: InstallState.FAILED,
    NodeStatus.FAILED_DEPLOYMENT: InstallState.FAILED,
    NodeStatus.FAILED_RELEASING: InstallState.FAILED,
    NodeStatus.FAILED_DISK_ERASING: InstallState.FAILED,
    NodeStatus.FAILED_ENTERING_RESCUE_MODE: InstallState.FAILED,
    NodeStatus.FAILED_EXITING_RESCUE_MODE: InstallState.FAILED,
    NodeStatus.ENTERING_RESCUE_MODE: InstallState.FAILED,
    NodeStatus.RESCUE_MODE: InstallState.FAILED,
    NodeStatus.BROKEN: InstallState.FAILED,
    NodeStatus.MISSING: InstallState.FAILED,
    NodeStatus.RESERVED: InstallState.FAILED,
    NodeStatus.RETIRED: InstallState.FAILED,
}
"""Rescue mode, Broken, Missing, Reserved and Retired are a person's doing: for an install they count as failed."""

OWNED = frozenset(
    {
        NodeStatus.ALLOCATED,
        NodeStatus.DEPLOYING,
        NodeStatus.DEPLOYED,
        NodeStatus.FAILED_DEPLOYMENT,
        NodeStatus.FAILED_RELEASING,
        NodeStatus.FAILED_DISK_ERASING,
    }
)
"""States in which the machine is somebody's: another user's is never touched."""

ERASABLE = frozenset(
    {
        NodeStatus.DEPLOYED,
        NodeStatus.FAILED_DEPLOYMENT,
        NodeStatus.FAILED_RELEASING,
        NodeStatus.FAILED_DISK_ERASING,
    }
)
"""MAAS erases the drives of a machine that was deployed; an allocated one it only gives back."""
RELEASABLE = OWNED - {NodeStatus.FAILED_DISK_ERASING}
ABORTABLE = frozenset({NodeStatus.COMMISSIONING, NodeStatus.TESTING, NodeStatus.DISK_ERASING})
"""Deploying can be aborted too, and released just as well: that leads to Ready at once."""
RECOMMISSIONABLE = frozenset({NodeStatus.FAILED_COMMISSIONING, NodeStatus.FAILED_TESTING})

ABSENT = InstallStatus(InstallState.ABSENT, "MAAS does not know the machine")


def status_of(machine: MaasMachine, error: MaasEvent | None = None) -> InstallStatus:
    """Where the machine stands; the detail of a failure is MAAS's newest error, if any, else its last event.

    No drives: commissioning lists them, and reads nothing of what is on them.
    """
    state = STATES[machine.status]
    said = str(error) if error is not None else machine.message
    detail = f"{machine.status_name}: {said}" if said and said != machine.status_name else machine.status_name
    return InstallStatus(state, detail, machine.system_id, machine.addresses)
