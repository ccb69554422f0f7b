"""MAAS's states as ours. (Here and not in formats/: `InstallState` belongs to the port.)"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.settings import StateLimits
from clusterctl.formats.maas.machines import MaasEvent, MaasMachine, NodeStatus
from clusterctl.ports import Clock, Deadline, InstallState, InstallStatus

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


STARTS = {
    NodeStatus.COMMISSIONING: "Commissioning",
    NodeStatus.TESTING: "Testing",
    NodeStatus.DEPLOYING: "Deploying",
    NodeStatus.RELEASING: "Releasing",
}
"""The events that MAAS writes when a state begins (provisioningserver/events.py; the first and third recorded)."""


class StateTimers:
    """Remembers since when each machine is in its passing state. Safe to use from many threads."""

    def __init__(self, limits: StateLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[str, tuple[NodeStatus, datetime]] = {}

    def begun(self, machine: MaasMachine) -> None:
        """We have just brought it there: its time begins now."""
        with self._lock:
            self._since[machine.system_id] = (machine.status, self._clock.now())

    def look(self, seen: Iterable[MaasMachine], machines: Machines, deadline: Deadline) -> None:
        """Note machines that came into another state; how long ago is asked of MAAS where another run, or nobody,
        brought them there.
        """
        with self._lock:
            known = {system_id: status for system_id, (status, _) in self._since.items()}
        changed = [machine for machine in seen if known.get(machine.system_id) is not machine.status]
        passing = [machine for machine in changed if machine.status in STARTS]
        ages = since_start(passing, machines, deadline) if passing else {}
        now = self._clock.now()
        with self._lock:
            for machine in changed:
                self._since[machine.system_id] = (machine.status, now - ages.get(machine.system_id, timedelta()))

    def overdue(self, machine: MaasMachine) -> str:
        """Why the machine counts as stuck; empty where it does not."""
        limit = self._limits.of(machine.status)
        with self._lock:
            status, since = self._since.get(machine.system_id, (None, None))
        if limit is None or since is None or status is not machine.status:
            return ""
        name, seconds = limit
        age = (self._clock.now() - since).total_seconds()
        if age <= seconds:
            return ""
        return (
            f"stuck: {machine.status_name} for {age / 60:.0f} minutes, provisioning.deadlines.{name} allows "
            f"{seconds / 60:.0f}; MAAS's last word: {machine.message or 'none'}"
        )


def since_start(passing: Sequence[MaasMachine], machines: Machines, deadline: Deadline) -> Mapping[str, timedelta]:
    """For how long each is in its state, at least: from the event of its beginning to MAAS's newest event of any kind.
    Both have MAAS's clock and zone, whatever these are.
    """
    starts = machines.newest_events({machine.system_id: STARTS[machine.status] for machine in passing}, deadline)
    newest = machines.newest_event(deadline) if starts else None
    if newest is None:
        return {}
    return {system_id: max(newest.at - event.at, timedelta()) for system_id, event in starts.items()}
