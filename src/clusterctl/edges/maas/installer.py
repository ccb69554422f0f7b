"""Installs machines through MAAS. Each call looks first, acts only where the state asks for it, and returns at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.api import MaasApi, MaasRefusedError
from clusterctl.edges.maas.changes import Changes, put_tags
from clusterctl.edges.maas.cloud_config import cloud_config
from clusterctl.edges.maas.machines import Listing, Machines
from clusterctl.edges.maas.matching import Finder
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.maas.states import ABSENT, ERASABLE, RECOMMISSIONABLE, RELEASABLE, STATES, StateTimers, status_of
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Observed
from clusterctl.formats.maas.machines import MaasEvent, MaasMachine, NodeStatus
from clusterctl.ports import Clock, Deadline, InstallState, InstallStatus, InstallTarget

Seen = Observed[MaasMachine]


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
        self._patience = StateTimers(settings.limits, clock)
        self._user_data = user_data
        self._finder = Finder(self._machines)
        self._changes = Changes(self._machines, self._patience)
        self._me = ""
        self._asking = threading.Lock()

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Adopt the machine that MAAS knows by MAC or name, or enrol it; then commission it. A failed commissioning
        stays failed until `release`.
        """
        seen = self._finder.find(target, deadline) or self._enrol(target, deadline)
        matching.check_owner(seen.value, target, self._whoami(deadline))
        if seen.value.status not in (NodeStatus.NEW, NodeStatus.READY):
            return self._told(seen, deadline)
        seen = self._correct(seen, target, deadline)
        if seen.value.status is NodeStatus.NEW:
            seen = self._changes.commission(seen, deadline)
        return self._told(seen, deadline)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Deploy to the root disk. Deploying and Deployed machines of ours are left alone."""
        user_data = self._user_data(target, self._clock.now())
        seen = self._finder.find(target, deadline)
        if seen is None:
            raise EdgeError("MAAS does not know the machine", where=target.name, remedy="prepare it first")
        matching.check_owner(seen.value, target, self._whoami(deadline))
        if STATES[seen.value.status] in (InstallState.INSTALLING, InstallState.INSTALLED):
            return self._told(seen, deadline)
        if seen.value.status is NodeStatus.READY:
            seen = self._changes.allocate(self._changes.lay_out(seen.value, target, deadline), deadline)
        if seen.value.status is not NodeStatus.ALLOCATED:
            raise EdgeError(
                f"MAAS cannot install a machine that is {seen.value.status_name}",
                where=target.name,
                remedy="look at its events in MAAS, release it, and prepare it again",
            )
        matching.check_layout(seen.value, target)
        return self._told(self._changes.deploy(seen.value, self._settings.series, user_data, deadline), deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """One list call for all that were found before; more for those that were not, one for the errors of those that
        failed. A machine that is not clearly ours, or stuck, comes back FAILED with the reason: it does not hide the
        others.
        """
        if not targets:
            return {}
        listed = self._finder.listed(targets, deadline)
        machines = listed.machines.values()
        self._patience.look(machines, self._machines, deadline)
        failed = [item.system_id for item in machines if STATES[item.status] is InstallState.FAILED]
        errors = self._machines.last_errors(failed, deadline) if failed else {}
        return {target.name: self._standing(listed, target, errors, deadline) for target in targets}

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Make way for another attempt: an install is given back, a failed commissioning is begun anew, what is stuck
        is aborted.
        """
        seen = self._finder.find(target, deadline)
        if seen is None:
            return Observed(ABSENT)
        status = seen.value.status
        matching.check_owner(seen.value, target, self._whoami(deadline))
        if seen.value.locked:
            raise EdgeError("the machine is locked in MAAS", where=target.name, remedy="unlock it in MAAS")
        stuck = self._patience.overdue(seen.value)
        if stuck:
            seen = self._changes.unstick(seen, stuck, target, deadline)
        elif status in RELEASABLE:
            seen = self._changes.release(seen.value, deadline)
        elif status in RECOMMISSIONABLE:
            seen = self._changes.commission(seen, deadline)
        elif STATES[status] is InstallState.FAILED:
            raise EdgeError(
                f"the machine is {seen.value.status_name} in MAAS, by a person's hand or a failure that needs one",
                where=target.name,
                remedy="mend and mark it fixed in MAAS",
            )
        return self._told(seen, deadline)

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Release with all drives erased. One that is being erased already is left alone."""
        seen = self._finder.find(target, deadline)
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
        return self._told(self._changes.erase(seen.value, deadline), deadline)

    # --- looking ----------------------------------------------------------------------------------------------------

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
        self._finder.remember(target, machine)
        status = status_of(machine, errors.get(machine.system_id))
        stuck = self._patience.overdue(machine)
        if stuck:
            status = replace(status, state=InstallState.FAILED, detail=stuck)
        elif status.state is InstallState.INSTALLED:
            root = matching.root_contract(machine, target)
            status = replace(status, addresses=matching.answering(machine, target), root=root)
        return Observed(status, listed.of(machine))

    def _told(self, seen: Seen, deadline: Deadline) -> Observed[InstallStatus]:
        error = None
        if STATES[seen.value.status] is InstallState.FAILED:
            error = self._machines.last_errors([seen.value.system_id], deadline).get(seen.value.system_id)
        return Observed(status_of(seen.value, error), seen.evidence)

    def _whoami(self, deadline: Deadline) -> str:
        """The user of our key; asked once."""
        with self._asking:
            self._me = self._me or self._machines.whoami(deadline)
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
            seen = self._finder.find(target, deadline)
            if seen is None:
                raise
            return seen

    def _correct(self, seen: Seen, target: InstallTarget, deadline: Deadline) -> Seen:
        form = matching.corrections(seen.value, target, self._settings)
        if form:
            seen = self._machines.update(seen.value.system_id, form, target.bmc, deadline)
        missing = [name for name in self._settings.tags if name not in seen.value.tags]
        return put_tags(self._machines, seen.value, missing, target, deadline) if missing else seen
