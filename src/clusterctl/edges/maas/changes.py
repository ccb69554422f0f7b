"""What is done to a machine in MAAS: each change once, also where its answer is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.api import MaasRefusedError
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.states import ABORTABLE, StateTimers
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Observed
from clusterctl.formats.maas.machines import MaasMachine, NodeStatus
from clusterctl.ports import Deadline, InstallTarget

Seen = Observed[MaasMachine]
BROKE_DOWN = 500


class Changes:
    """Every state that a change leads to has its time from then on."""

    def __init__(self, machines: Machines, patience: StateTimers) -> None:
        self._machines = machines
        self._patience = patience

    def commission(self, seen: Seen, deadline: Deadline) -> Seen:
        system_id = seen.value.system_id
        return self._once(
            lambda: self._machines.commission(system_id, deadline),
            system_id,
            {NodeStatus.COMMISSIONING, NodeStatus.TESTING, NodeStatus.READY},
            deadline,
        )

    def lay_out(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> MaasMachine:
        """Boot disk and root filesystem on the drive with the right serial: both may be set again without harm."""
        drives = self._machines.block_devices(machine.system_id, deadline)
        drive = matching.root_drive(drives, target, machine.boot_disk)
        self._machines.set_boot_disk(machine.system_id, drive.id, deadline)
        return self._machines.lay_flat(machine.system_id, drive.id, deadline).value

    def allocate(self, machine: MaasMachine, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.allocate(machine.system_id, deadline),
            machine.system_id,
            {NodeStatus.ALLOCATED},
            deadline,
        )

    def deploy(self, machine: MaasMachine, series: str, user_data: str, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.deploy(machine.system_id, series, user_data, deadline),
            machine.system_id,
            {NodeStatus.DEPLOYING, NodeStatus.DEPLOYED},
            deadline,
        )

    def release(self, machine: MaasMachine, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.release(machine.system_id, deadline),
            machine.system_id,
            {NodeStatus.RELEASING, NodeStatus.DISK_ERASING, NodeStatus.READY},
            deadline,
        )

    def unstick(self, seen: Seen, why: str, target: InstallTarget, deadline: Deadline) -> Seen:
        """Abort, or release what was being deployed; both switch the machine off. It has its time anew."""
        machine = seen.value
        if machine.status is NodeStatus.DEPLOYING:
            after = self.release(machine, deadline)
        elif machine.status in ABORTABLE:
            after = self._once(
                lambda: self._machines.abort(machine.system_id, deadline),
                machine.system_id,
                set(NodeStatus) - {machine.status},
                deadline,
            )
        else:
            raise EdgeError(
                f"{why}; MAAS has no way to abort that",
                where=target.name,
                remedy="restart MAAS's rack controller, or mark the machine broken and then fixed in MAAS",
            )
        self._patience.begun(after.value)
        return after

    def erase(self, machine: MaasMachine, deadline: Deadline) -> Seen:
        """Only a machine seen erasing counts where the answer was lost: Ready may have come without it."""
        return self._once(
            lambda: self._machines.erase(machine.system_id, deadline),
            machine.system_id,
            {NodeStatus.DISK_ERASING},
            deadline,
        )

    def _once(self, act: Callable[[], Seen], system_id: str, done: set[NodeStatus], deadline: Deadline) -> Seen:
        """Act; where the answer was lost, or MAAS broke down over it, look: it was done if the machine is in one of
        the states `done`. (From 3.5 on a request may wait for a dead BMC, and answer 500.)
        """
        try:
            seen = act()
        except (OutcomeUnknownError, MaasRefusedError) as error:
            if isinstance(error, MaasRefusedError) and error.status != BROKE_DOWN:
                raise
            seen = self._machines.get(system_id, deadline)
            if seen.value.status not in done:
                raise
        self._patience.begun(seen.value)
        return seen


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
            remedy="see in MAAS whether the tag has a definition of its own, or take it out of provisioning.tags",
        )
    return seen


def _create(machines: Machines, name: str, deadline: Deadline) -> None:
    """Another run may be faster: that it exists is no failure."""
    try:
        machines.create_tag(name, deadline)
    except MaasRefusedError as error:
        if "name" not in error.fields:
            raise
