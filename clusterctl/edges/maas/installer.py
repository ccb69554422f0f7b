"""Installs machines through MAAS. Each call looks first, acts only where the state asks for it, and returns at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.cloud_config import cloud_config
from clusterctl.edges.maas.errors import MaasRefusedError
from clusterctl.edges.maas.machines import Listing, Machines
from clusterctl.edges.maas.patience import Patience
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.maas.states import ABORTABLE, ABSENT, ERASABLE, RECOMMISSIONABLE, RELEASABLE, STATES, status_of
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Observed
from clusterctl.formats.maas import MaasEvent, MaasMachine, NodeStatus
from clusterctl.ports import Clock, Deadline, InstallState, InstallStatus, InstallTarget

Seen = Observed[MaasMachine]
NOT_FOUND, BROKE_DOWN = 404, 500


class MaasInstaller:
    """Meets `Installer`. Safe to use from many threads, for different machines."""

    def __init__(
        self,
        settings: MaasSettings,
        clock: Clock,
        user_data: Callable[[InstallTarget, datetime], str] = cloud_config,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._machines = Machines(MaasApi(settings, clock))
        self._patience = Patience(settings.limits, clock)
        self._user_data = user_data
        self._ids: dict[str, str] = {}
        self._me = ""

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Adopt the machine that MAAS knows by MAC or name, or enrol it; then commission it. A failed commissioning
        stays failed until `release`.
        """
        seen = self._find(target, deadline) or self._enrol(target, deadline)
        matching.check_owner(seen.value, target, self._whoami(deadline))
        if seen.value.status not in (NodeStatus.NEW, NodeStatus.READY):
            return self._told(seen, deadline)
        seen = self._correct(seen, target, deadline)
        if seen.value.status is NodeStatus.NEW:
            seen = self._commission(seen, deadline)
        return self._told(seen, deadline)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Deploy to the root disk. Deploying and Deployed machines of ours are left alone."""
        user_data = self._user_data(target, self._clock.now())
        seen = self._find(target, deadline)
        if seen is None:
            raise EdgeError("MAAS does not know the machine", where=target.name, remedy="prepare it first")
        matching.check_owner(seen.value, target, self._whoami(deadline))
        if STATES[seen.value.status] in (InstallState.INSTALLING, InstallState.INSTALLED):
            return self._told(seen, deadline)
        if seen.value.status is NodeStatus.READY:
            seen = self._allocate(self._lay_out(seen.value, target, deadline), deadline)
        if seen.value.status is not NodeStatus.ALLOCATED:
            raise EdgeError(
                f"MAAS cannot install a machine that is {seen.value.status_name}",
                where=target.name,
                remedy="look at its events in MAAS, release it, and prepare it again",
            )
        matching.check_layout(seen.value, target)
        return self._told(self._deploy(seen.value, user_data, deadline), deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """One list call for all that were found before; more for those that were not, one for the errors of those that
        failed. A machine that is not clearly ours, or stuck, comes back FAILED with the reason: it does not hide the
        others.
        """
        if not targets:
            return {}
        listed = self._list(targets, deadline)
        machines = listed.machines.values()
        self._patience.look(machines, self._machines, deadline)
        failed = [item.system_id for item in machines if STATES[item.status] is InstallState.FAILED]
        errors = self._machines.last_errors(failed, deadline) if failed else {}
        return {target.name: self._standing(listed, target, errors, deadline) for target in targets}

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Make way for another attempt: an install is given back, a failed commissioning is begun anew, what is stuck
        is aborted.
        """
        seen = self._find(target, deadline)
        if seen is None:
            return Observed(ABSENT)
        status = seen.value.status
        matching.check_owner(seen.value, target, self._whoami(deadline))
        if seen.value.locked:
            raise EdgeError("the machine is locked in MAAS", where=target.name, remedy="unlock it in MAAS")
        stuck = self._patience.overdue(seen.value)
        if stuck:
            seen = self._unstick(seen, stuck, target, deadline)
        elif status in RELEASABLE:
            seen = self._release(seen.value, deadline)
        elif status in RECOMMISSIONABLE:
            seen = self._commission(seen, deadline)
        elif STATES[status] is InstallState.FAILED:
            raise EdgeError(
                f"the machine is {seen.value.status_name} in MAAS, by a person's hand or a failure that needs one",
                where=target.name,
                remedy="mend and mark it fixed in MAAS",
            )
        return self._told(seen, deadline)

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Release with all drives erased. One that is being erased already is left alone."""
        seen = self._find(target, deadline)
        if seen is None:
            raise EdgeError("MAAS does not know the machine", where=target.name, remedy="erase its drives by hand")
        matching.prove_serial(seen.value, target)
        matching.check_owner(seen.value, target, self._whoami(deadline))
        if seen.value.status is NodeStatus.DISK_ERASING:
            return self._told(seen, deadline)
        if seen.value.locked or seen.value.status not in ERASABLE:
            how = "locked" if seen.value.locked else seen.value.status_name
            raise EdgeError(
                f"MAAS erases only machines that it has deployed, and this one is {how}",
                where=target.name,
                remedy="install it, then retire it again; or erase its drives by hand and retire it without --wipe",
            )
        return self._told(self._begin_erasing(seen.value, deadline), deadline)

    # --- looking ----------------------------------------------------------------------------------------------------

    def _find(self, target: InstallTarget, deadline: Deadline) -> Seen | None:
        """By MAC and by name: where an act follows, every machine that could be it counts."""
        listed = self._by_macs([target], deadline) | self._machines.by_hostnames([target.name], deadline)
        machine = matching.ours(listed.machines.values(), target)
        if machine is None:
            return None
        self._ids[target.name] = machine.system_id
        return Observed(machine, listed.of(machine))

    def _list(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Listing:
        """By the ids that are known; else, or where MAAS knows the id no more, by MAC; else by name."""
        ids = [self._ids[target.name] for target in targets if target.name in self._ids]
        listed = self._machines.by_ids(ids, deadline)
        sought = [target for target in targets if self._ids.get(target.name) not in listed.machines]
        if sought:
            listed |= self._by_macs(sought, deadline)
        macs = {mac for machine in listed.machines.values() for mac in machine.macs}
        names = [target.name for target in sought if not macs & set(target.macs)]
        return listed | self._machines.by_hostnames(names, deadline) if names else listed

    def _by_macs(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Listing:
        return self._machines.by_macs([mac for target in targets for mac in target.macs], deadline)

    def _standing(
        self, listed: Listing, target: InstallTarget, errors: Mapping[str, MaasEvent], deadline: Deadline
    ) -> Observed[InstallStatus]:
        mine = [
            item
            for item in listed.machines.values()
            if set(item.macs) & set(target.macs) or item.hostname == target.name
        ]
        try:
            machine = matching.ours(mine, target)
            if machine is None:
                return Observed(ABSENT, listed.rest)
            matching.check_owner(machine, target, self._whoami(deadline))
        except EdgeError as error:
            evidence = tuple(item for machine in mine for item in listed.of(machine))
            return Observed(InstallStatus(InstallState.FAILED, error.message), evidence)
        self._ids[target.name] = machine.system_id
        status = status_of(machine, errors.get(machine.system_id))
        stuck = self._patience.overdue(machine)
        if stuck:
            status = replace(status, state=InstallState.FAILED, detail=stuck)
        return Observed(status, listed.of(machine))

    def _told(self, seen: Seen, deadline: Deadline) -> Observed[InstallStatus]:
        error = None
        if STATES[seen.value.status] is InstallState.FAILED:
            error = self._machines.last_errors([seen.value.system_id], deadline).get(seen.value.system_id)
        return Observed(status_of(seen.value, error), seen.evidence)

    def _whoami(self, deadline: Deadline) -> str:
        """The user of our key; asked once."""
        if not self._me:
            self._me = self._machines.whoami(deadline)
        return self._me

    # --- acting -----------------------------------------------------------------------------------------------------

    def _enrol(self, target: InstallTarget, deadline: Deadline) -> Seen:
        """Create the machine; when the answer is lost or someone was faster, it is there: adopt it."""
        form = matching.enrolment(target, self._settings)
        try:
            return self._machines.enrol(form, target.bmc, deadline)
        except (OutcomeUnknownError, MaasRefusedError) as error:
            if isinstance(error, MaasRefusedError) and not error.fields.keys() & {"mac_addresses", "hostname"}:
                raise
            seen = self._find(target, deadline)
            if seen is None:
                raise
            return seen

    def _correct(self, seen: Seen, target: InstallTarget, deadline: Deadline) -> Seen:
        form = matching.corrections(seen.value, target, self._settings)
        if form:
            seen = self._machines.update(seen.value.system_id, form, target.bmc, deadline)
        missing = [name for name in self._settings.tags if name not in seen.value.tags]
        return self._tag(seen.value, missing, target, deadline) if missing else seen

    def _tag(self, machine: MaasMachine, names: Sequence[str], target: InstallTarget, deadline: Deadline) -> Seen:
        """Put tags on; MAAS answers 200 also where it put none on, so that the machine is read again."""
        for name in names:
            try:
                self._machines.tag(name, machine.system_id, deadline)
            except MaasRefusedError as error:
                if error.status != NOT_FOUND:
                    raise
                self._create_tag(name, deadline)
                self._machines.tag(name, machine.system_id, deadline)
        seen = self._machines.get(machine.system_id, deadline)
        lacking = [name for name in names if name not in seen.value.tags]
        if lacking:
            raise EdgeError(
                f"MAAS did not put the tag {', '.join(lacking)} on {machine.hostname} ({machine.system_id})",
                where=target.name,
                remedy="see in MAAS whether the tag has a definition of its own, or take it out of provisioning.tags",
            )
        return seen

    def _create_tag(self, name: str, deadline: Deadline) -> None:
        """Another run may be faster: that it exists is no failure."""
        try:
            self._machines.create_tag(name, deadline)
        except MaasRefusedError as error:
            if "name" not in error.fields:
                raise

    def _commission(self, seen: Seen, deadline: Deadline) -> Seen:
        system_id = seen.value.system_id
        return self._once(
            lambda: self._machines.commission(system_id, deadline),
            system_id,
            {NodeStatus.COMMISSIONING, NodeStatus.TESTING, NodeStatus.READY},
            deadline,
        )

    def _lay_out(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> MaasMachine:
        """Boot disk and root filesystem on the drive with the right serial: both may be set again without harm."""
        drive = matching.root_drive(self._machines.block_devices(machine.system_id, deadline), target)
        self._machines.set_boot_disk(machine.system_id, drive.id, deadline)
        return self._machines.lay_flat(machine.system_id, drive.id, deadline).value

    def _allocate(self, machine: MaasMachine, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.allocate(machine.system_id, deadline),
            machine.system_id,
            {NodeStatus.ALLOCATED},
            deadline,
        )

    def _deploy(self, machine: MaasMachine, user_data: str, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.deploy(machine.system_id, self._settings.series, user_data, deadline),
            machine.system_id,
            {NodeStatus.DEPLOYING, NodeStatus.DEPLOYED},
            deadline,
        )

    def _release(self, machine: MaasMachine, deadline: Deadline) -> Seen:
        return self._once(
            lambda: self._machines.release(machine.system_id, deadline),
            machine.system_id,
            {NodeStatus.RELEASING, NodeStatus.DISK_ERASING, NodeStatus.READY},
            deadline,
        )

    def _unstick(self, seen: Seen, why: str, target: InstallTarget, deadline: Deadline) -> Seen:
        """Abort, or release what was being deployed; both switch the machine off. It has its time anew."""
        machine = seen.value
        if machine.status is NodeStatus.DEPLOYING:
            after = self._release(machine, deadline)
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

    def _begin_erasing(self, machine: MaasMachine, deadline: Deadline) -> Seen:
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
