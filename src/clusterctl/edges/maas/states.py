"""MAAS's states as ours. (Here and not in formats/: `InstallState` belongs to the port.)"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from clusterctl.edges.maas.failures import MaasFailure
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.settings import StateLimits
from clusterctl.formats.maas.machines import STARTS, MaasMachine, MachineStatus
from clusterctl.ports import Clock, Deadline, FailureKind, InstallState, InstallStatus

STATES = {
    MachineStatus.NEW: InstallState.ABSENT,
    MachineStatus.COMMISSIONING: InstallState.PREPARING,
    MachineStatus.TESTING: InstallState.PREPARING,
    MachineStatus.READY: InstallState.READY,
    MachineStatus.ALLOCATED: InstallState.READY,
    MachineStatus.DEPLOYING: InstallState.INSTALLING,
    MachineStatus.DEPLOYED: InstallState.INSTALLED,
    MachineStatus.RELEASING: InstallState.RELEASING,
    MachineStatus.DISK_ERASING: InstallState.ERASING,
    MachineStatus.EXITING_RESCUE_MODE: InstallState.RELEASING,
    MachineStatus.FAILED_COMMISSIONING: InstallState.FAILED,
    MachineStatus.FAILED_TESTING: InstallState.FAILED,
    MachineStatus.FAILED_DEPLOYMENT: InstallState.FAILED,
    MachineStatus.FAILED_RELEASING: InstallState.FAILED,
    MachineStatus.FAILED_DISK_ERASING: InstallState.FAILED,
    MachineStatus.FAILED_ENTERING_RESCUE_MODE: InstallState.FAILED,
    MachineStatus.FAILED_EXITING_RESCUE_MODE: InstallState.FAILED,
    MachineStatus.ENTERING_RESCUE_MODE: InstallState.FAILED,
    MachineStatus.RESCUE_MODE: InstallState.FAILED,
    MachineStatus.BROKEN: InstallState.FAILED,
    MachineStatus.MISSING: InstallState.FAILED,
    MachineStatus.RESERVED: InstallState.FAILED,
    MachineStatus.RETIRED: InstallState.FAILED,
}
"""Rescue mode, Broken, Missing, Reserved and Retired are an operator's doing: for an install they count as failed."""

_EXIT_RESCUE = "leave rescue mode: maas PROFILE machine exit-rescue-mode {}"
_DELETE = "delete it in MAAS: maas PROFILE machine delete {}; the next install enrols it again"
OPERATOR_REMEDIES = {
    MachineStatus.RESCUE_MODE: _EXIT_RESCUE,
    MachineStatus.ENTERING_RESCUE_MODE: _EXIT_RESCUE,
    MachineStatus.FAILED_ENTERING_RESCUE_MODE: _EXIT_RESCUE,
    MachineStatus.FAILED_EXITING_RESCUE_MODE: _EXIT_RESCUE,
    MachineStatus.BROKEN: "repair the machine, then: maas PROFILE machine mark-fixed {}",
    MachineStatus.RESERVED: "release it: maas PROFILE machine release {}",
    MachineStatus.MISSING: _DELETE,
    MachineStatus.RETIRED: _DELETE,
}
"""What an operator can do in the state, with the machine's system id (the transitions of maasserver/node_status.py)."""
UNLOCK = "unlock it: maas PROFILE machine unlock {}"

OWNED = frozenset(
    {
        MachineStatus.ALLOCATED,
        MachineStatus.DEPLOYING,
        MachineStatus.DEPLOYED,
        MachineStatus.FAILED_DEPLOYMENT,
        MachineStatus.FAILED_RELEASING,
        MachineStatus.FAILED_DISK_ERASING,
    }
)
"""States in which the machine has an owner: another user's machine is never touched."""

ERASABLE = frozenset(
    {
        MachineStatus.DEPLOYED,
        MachineStatus.FAILED_DEPLOYMENT,
        MachineStatus.FAILED_RELEASING,
        MachineStatus.FAILED_DISK_ERASING,
    }
)
"""MAAS erases the drives of a machine that was deployed; an allocated one it only releases."""
ABORTABLE = frozenset({MachineStatus.COMMISSIONING, MachineStatus.TESTING, MachineStatus.DISK_ERASING})
"""Deploying can be aborted too, and released just as well: that leads to Ready at once."""
RECOMMISSIONABLE = frozenset({MachineStatus.FAILED_COMMISSIONING, MachineStatus.FAILED_TESTING})

ABSENT = InstallStatus(InstallState.ABSENT, "MAAS does not know the machine")


def status_of(machine: MaasMachine, failure: MaasFailure | None = None) -> InstallStatus:
    """Return where the machine is. The detail of a failure is what MAAS keeps as its reason, else the last event.

    No drives: commissioning lists them, and reads nothing of what is on them.
    """
    state = STATES[machine.status]
    message = failure.cause if failure is not None else machine.message
    detail = f"{machine.status_name}: {message}" if message not in ("", machine.status_name) else machine.status_name
    status = InstallStatus(state, detail, machine.system_id, machine.addresses)
    if failure is not None:
        status = replace(status, failure=failure.kind, remedy=failure.remedy)
    if state is not InstallState.FAILED:
        return status
    remedy = UNLOCK if machine.locked else OPERATOR_REMEDIES.get(machine.status, "")
    if remedy:
        return replace(status, failure=FailureKind.OPERATOR, remedy=remedy.format(machine.system_id))
    return replace(status, failure=status.failure or FailureKind.MACHINE)


class StateTimers:
    """Remembers since when each machine is in its passing state. Safe to use from many threads."""

    def __init__(self, limits: StateLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._since: dict[str, tuple[MachineStatus, datetime]] = {}
        self._away: datetime | None = None

    def away(self) -> None:
        """Stop the time of all machines: MAAS does not answer."""
        with self._lock:
            self._away = self._away or self._clock.now()

    def back(self) -> None:
        """Let the time of all machines run again: MAAS answers."""
        with self._lock:
            if self._away is not None:
                gone, self._away = self._clock.now() - self._away, None
                self._since = {each: (status, since + gone) for each, (status, since) in self._since.items()}

    def begun(self, machine: MaasMachine) -> None:
        """Note that we have just brought it into its state: its time begins now."""
        with self._lock:
            self._since[machine.system_id] = (machine.status, self._clock.now())

    def look(self, seen: Iterable[MaasMachine], machines: Machines, deadline: Deadline) -> None:
        """Note machines that came into another state. MAAS's events have the time, where we did not do it."""
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
        """Return why the machine counts as stuck; empty where it does not."""
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
            f"{seconds / 60:.0f}; MAAS's last event: {machine.message or 'none'}"
        )


def since_start(passing: Sequence[MaasMachine], machines: Machines, deadline: Deadline) -> Mapping[str, timedelta]:
    """Return for how long each machine is in its state, at least: from the event of its beginning to MAAS's newest
    event of any kind. Both have MAAS's clock and zone, whatever these are.
    """
    starts = machines.newest_events({machine.system_id: STARTS[machine.status] for machine in passing}, deadline)
    newest = machines.newest_event(deadline) if starts else None
    if newest is None:
        return {}
    return {system_id: max(newest.at - event.at, timedelta()) for system_id, event in starts.items()}
