"""Changes of a machine in MAAS: each is made once, and its outcome is known, also where its answer is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.api import MaasBusyError, MaasRefusedError
from clusterctl.edges.maas.failures import Failures
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.states import ABORTABLE, StateTimers
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Observed
from clusterctl.formats.maas.machines import MaasMachine, MachineStatus
from clusterctl.ports import Deadline, FailureKind, InstallError, InstallTarget

Seen = Observed[MaasMachine]
BAD_REQUEST, BROKE_DOWN = 400, 500


class MaasChanges:
    """Every state that a change leads to has its time from then on."""

    def __init__(self, machines: Machines, failures: Failures, timers: StateTimers) -> None:
        self._machines = machines
        self._failures = failures
        self._timers = timers

    def commission(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.commission(machine.system_id, deadline),
            machine,
            target,
            {MachineStatus.COMMISSIONING, MachineStatus.TESTING, MachineStatus.READY},
            deadline,
        )

    def lay_out(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> MaasMachine:
        """Set boot disk and root filesystem to the drive with the right serial: both may be set again without harm."""
        drives = self._machines.block_devices(machine.system_id, deadline)
        drive = matching.root_drive(drives, target, machine.boot_disk)
        self._machines.set_boot_disk(machine.system_id, drive.id, deadline)
        return self._machines.lay_flat(machine.system_id, drive.id, deadline).value

    def allocate(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.allocate(machine.system_id, deadline),
            machine,
            target,
            {MachineStatus.ALLOCATED},
            deadline,
        )

    def deploy(
        self, machine: MaasMachine, series: str, user_data: str, target: InstallTarget, deadline: Deadline
    ) -> Seen:
        return self._once(
            lambda: self._machines.deploy(machine.system_id, series, user_data, deadline),
            machine,
            target,
            {MachineStatus.DEPLOYING, MachineStatus.DEPLOYED},
            deadline,
        )

    def release(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.release(machine.system_id, deadline),
            machine,
            target,
            {MachineStatus.RELEASING, MachineStatus.DISK_ERASING, MachineStatus.READY},
            deadline,
        )

    def unstick(self, machine: MaasMachine, why: str, target: InstallTarget, deadline: Deadline) -> Seen:
        """Abort, or release what was being deployed; both switch the machine off. Its time begins again."""
        if machine.status is MachineStatus.DEPLOYING:
            after = self.release(machine, target, deadline)
        elif machine.status in ABORTABLE:
            after = self._once(
                lambda: self._machines.abort(machine.system_id, deadline),
                machine,
                target,
                set(MachineStatus),
                deadline,
            )
        else:
            raise EdgeError(
                f"{why}; MAAS has no way to abort that",
                where=target.name,
                remedy="restart MAAS's rack controller, or mark the machine broken and then fixed in MAAS",
            )
        self._timers.begun(after.value)
        return after

    def erase(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> Seen:
        """Erase the disks. After a lost answer only a machine seen erasing counts: Ready may have come without it."""
        return self._once(
            lambda: self._machines.erase(machine.system_id, deadline),
            machine,
            target,
            {MachineStatus.DISK_ERASING},
            deadline,
        )

    def _once(
        self,
        act: Callable[[], Seen],
        machine: MaasMachine,
        target: InstallTarget,
        done: set[MachineStatus],
        deadline: Deadline,
    ) -> Seen:
        """Act. Where the answer was lost, or MAAS broke down or was busy, look at the machine: the change was made if
        it is in one of the states `done`, and was not before.

        Raises `InstallError` where the attempt has failed: MAAS may wait for a BMC, answer 500, and leave the machine
        where it was.
        """
        cursor = self._failures.cursor(machine, deadline)
        try:
            seen = act()
        except (OutcomeUnknownError, MaasBusyError, MaasRefusedError) as error:
            if isinstance(error, MaasRefusedError) and error.status != BROKE_DOWN:
                raise self._refused(error, deadline) from error
            seen = self._machines.get(machine.system_id, deadline)
            if seen.value.status not in done - {machine.status}:
                raise self._unsuccessful(error, cursor, seen.value, target, deadline) from error
        self._timers.begun(seen.value)
        return seen

    def _refused(self, error: MaasRefusedError, deadline: Deadline) -> EdgeError:
        """Return the error to raise. Without a rack controller MAAS calls an image unavailable (recorded): that is no
        refusal of the request, and passes.
        """
        if error.status != BAD_REQUEST or not self._machines.no_rack_connected(deadline):
            return error
        return MaasBusyError(
            f"no rack controller is connected to the MAAS region; MAAS reports: {error.message}",
            where=error.where,
            remedy="start MAAS's rack controllers, then run the step again",
            retry_after=None,
        )

    def _unsuccessful(
        self, error: EdgeError, cursor: int, machine: MaasMachine, target: InstallTarget, deadline: Deadline
    ) -> EdgeError:
        """Return the error to raise. The cause that MAAS keeps in the machine's events outranks its answer."""
        failure = self._failures.since(cursor, machine, target, deadline)
        if failure is not None:
            return failure.error(target)
        if isinstance(error, MaasRefusedError):
            return InstallError(error.message, FailureKind.MACHINE, where=target.name, remedy=error.remedy)
        return error


NOT_FOUND = 404


def put_tags(
    machines: Machines, machine: MaasMachine, names: Sequence[str], target: InstallTarget, deadline: Deadline
) -> Observed[MaasMachine]:
    """Put tags on; MAAS answers 200 also where it put none on, so that the machine is read again."""
    for name in names:
        try:
            machines.tag(name, machine.system_id, deadline)
        except MaasRefusedError as error:
            if error.status != NOT_FOUND:
                raise
            _create(machines, name, deadline)
            machines.tag(name, machine.system_id, deadline)
    seen = machines.get(machine.system_id, deadline)
    lacking = [name for name in names if name not in seen.value.tags]
    if lacking:
        raise EdgeError(
            f"MAAS did not put the tag {', '.join(lacking)} on {machine.hostname} ({machine.system_id})",
            where=target.name,
            remedy="check in MAAS whether the tag has a definition of its own, or remove it from provisioning.tags",
        )
    return seen


def _create(machines: Machines, name: str, deadline: Deadline) -> None:
    """Create the tag. Another run may be faster: that it exists is no failure."""
    try:
        machines.create_tag(name, deadline)
    except MaasRefusedError as error:
        if "name" not in error.fields:
            raise
