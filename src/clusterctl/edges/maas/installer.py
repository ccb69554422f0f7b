"""Installs machines through MAAS. Each call looks first, and acts only where the state asks for it.

An act returns when MAAS has answered, which may take minutes: MAAS may wait for the machine's BMC.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.api import MaasApi, MaasRefusedError, MaasTurn, at_once
from clusterctl.edges.maas.changes import MaasChanges, put_tags
from clusterctl.edges.maas.cloud_config import cloud_config
from clusterctl.edges.maas.failures import Failures, MaasFailure
from clusterctl.edges.maas.machines import AGENT, MachineListing, Machines
from clusterctl.edges.maas.matching import DEFAULT_POOL, Finder
from clusterctl.edges.maas.power_logins import power_login
from clusterctl.edges.maas.rights import REMEDY, pool_rights
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.maas.states import (
    ABSENT,
    ERASABLE,
    OPERATOR_REMEDIES,
    OWNED,
    RECOMMISSIONABLE,
    STATES,
    UNLOCK,
    StateTimers,
    status_of,
)
from clusterctl.fleet.errors import AuthenticationError, EdgeError, InstallerUnavailableError, OutcomeUnknownError
from clusterctl.fleet.finding import Observed
from clusterctl.formats.maas.machines import MaasMachine, MachineStatus
from clusterctl.ports import (
    BmcAddress,
    Clock,
    Deadline,
    FailureKind,
    InstallError,
    InstallState,
    InstallStatus,
    InstallTarget,
)

Seen = Observed[MaasMachine]
REVERTED = frozenset({MachineStatus.NEW, MachineStatus.ALLOCATED})
"""States that MAAS brings a machine back to when a commissioning or a deployment fails inside the request."""


class MaasInstaller:
    """Meets `Installer` and `Eraser`. Safe to use from many threads, for different machines."""

    def __init__(
        self,
        settings: MaasSettings,
        clock: Clock,
        user_data: Callable[[InstallTarget, datetime], str] = cloud_config,
        turn: MaasTurn = at_once,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._machines = Machines(MaasApi(settings, clock, turn))
        self._timers = StateTimers(settings.limits, clock)
        self._user_data = user_data
        self._finder = Finder(self._machines)
        self._failures = Failures(self._machines)
        self._changes = MaasChanges(self._machines, self._failures, self._timers)
        self._user = ""
        self._asking = threading.Lock()

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Adopt the machine that MAAS knows by MAC or name, or enrol it; then commission it. A failed commissioning
        stays failed until `release`.
        """
        user = self._whoami(deadline)
        seen = self._finder.find(target, deadline) or self._enrol(target, deadline)
        matching.check_owner(seen.value, target, user)
        matching.check_pool(seen.value, target, self._settings)
        if seen.value.status not in (MachineStatus.NEW, MachineStatus.READY):
            return self._status(seen, target, deadline)
        seen = self._correct(seen, target, deadline)
        if seen.value.status is MachineStatus.NEW:
            seen = self._changes.commission(seen.value, target, deadline)
        return self._status(seen, target, deadline)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Deploy to the root disk. Deploying and Deployed machines of ours are left alone.

        An Allocated machine of ours that is laid out on no drive, or on another one, is released: its layout can only
        be set while it is Ready. It comes back READY then, and nothing was started.
        """
        user_data = self._user_data(target, self._clock.now())
        machine = self._found(target, deadline)
        if STATES[machine.value.status] in (InstallState.INSTALLING, InstallState.INSTALLED):
            return self._status(machine, target, deadline)
        if machine.value.status is MachineStatus.READY:
            matching.check_pool(machine.value, target, self._settings)
            laid_out = self._changes.lay_out(machine.value, target, deadline)
            machine = self._changes.allocate(laid_out, target, deadline)
        elif machine.value.status is MachineStatus.ALLOCATED:
            self._prove_ours(machine.value, target, deadline)
            if matching.layout_problem(machine.value, target):
                return self._status(self._changes.release(machine.value, target, deadline), target, deadline)
        else:
            raise EdgeError(
                f"MAAS cannot install a machine that is {machine.value.status_name}",
                where=target.name,
                remedy="read its events in MAAS, release it, and prepare it again",
            )
        matching.check_layout(machine.value, target)
        after = self._changes.deploy(machine.value, self._settings.series, user_data, target, deadline)
        return self._status(after, target, deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """Return each machine's status, by name: one list call for all that were found before, more for the others, one
        for the events of those that failed. A machine that is not clearly ours, or stuck, comes back FAILED with the
        reason: it does not hide the others.

        Raises `AuthenticationError` where the key lacks the needed rights, before anything is changed, and
        `InstallerUnavailableError` where MAAS does not run: no machine's time runs meanwhile.
        """
        if not targets:
            return {}
        try:
            seen = self._observe(targets, deadline)
        except InstallerUnavailableError:
            self._timers.away()
            raise
        self._timers.back()
        return seen

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Make way for another attempt: release an install, commission again after a failed commissioning, abort what
        is stuck.
        """
        user = self._whoami(deadline)
        seen = self._finder.find(target, deadline)
        if seen is None:
            return Observed(ABSENT)
        machine = seen.value
        matching.check_owner(machine, target, user)
        self._check_releasable(machine, target)
        stuck = self._timers.overdue(machine)
        if stuck:
            seen = self._changes.unstick(machine, stuck, target, deadline)
        elif machine.status in OWNED:
            if machine.status is MachineStatus.ALLOCATED:
                self._prove_ours(machine, target, deadline)
            seen = self._changes.release(machine, target, deadline)
        elif machine.status in RECOMMISSIONABLE:
            seen = self._changes.commission(machine, target, deadline)
        return self._status(seen, target, deadline)

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        """Return MAAS's login at the machine's BMC; the site's, which MAAS will get, where MAAS has none yet.

        None where MAAS switches the machine in another way than over Redfish.
        """
        user = self._whoami(deadline)
        seen = self._finder.find(target, deadline)
        if seen is None or not seen.value.power_type:
            return replace(target.bmc, former=None)
        matching.check_owner(seen.value, target, user)
        if seen.value.power_type != matching.REDFISH:
            return None
        return power_login(self._machines.power_parameters(seen.value.system_id, deadline), target)

    def erases_any(self, name: str) -> bool:
        """MAAS erases only what it has deployed."""
        del name
        return False

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Release with all drives erased. One that is being erased already is left alone."""
        user = self._whoami(deadline)
        seen = self._finder.find(target, deadline)
        if seen is None:
            raise EdgeError("MAAS does not know the machine", where=target.name, remedy="erase its drives by hand")
        matching.prove_serial(seen.value, target)
        matching.check_owner(seen.value, target, user)
        if seen.value.status is MachineStatus.DISK_ERASING:
            return self._status(seen, target, deadline)
        if seen.value.locked or seen.value.status not in ERASABLE:
            how = "locked" if seen.value.locked else seen.value.status_name
            raise EdgeError(
                f"MAAS erases only machines that it has deployed, and this one is {how}",
                where=target.name,
                remedy="install it, then retire it again; or erase its drives by hand and retire it without --wipe",
            )
        return self._status(self._changes.erase(seen.value, target, deadline), target, deadline)

    # --- reading ----------------------------------------------------------------------------------------------------

    def _observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        user = self._whoami(deadline)
        listed = self._finder.listed(targets, deadline)
        readable = [one for one in listed.machines.values() if not one.unreadable]
        self._timers.look(readable, self._machines, deadline)
        failed = [one for one in readable if STATES[one.status] is InstallState.FAILED or one.status in REVERTED]
        owners = {machine.system_id: target for target in targets for machine in _candidates(listed, target)}
        failures = self._failures.last(failed, owners, deadline)
        return {target.name: self._observed(listed, target, user, failures) for target in targets}

    def _observed(
        self, listed: MachineListing, target: InstallTarget, user: str, failures: Mapping[str, MaasFailure]
    ) -> Observed[InstallStatus]:
        mine = _candidates(listed, target)
        try:
            machine = matching.ours(mine, target)
            if machine is None:
                return Observed(ABSENT, listed.rest)
            matching.require_readable(machine, target)
            matching.check_owner(machine, target, user)
            matching.check_pool(machine, target, self._settings)
        except InstallError as error:
            evidence = tuple(item for machine in mine for item in listed.of(machine))
            status = InstallStatus(InstallState.FAILED, error.message, failure=error.failure, remedy=error.remedy)
            return Observed(status, evidence)
        self._finder.remember(target, machine)
        status = status_of(machine, failures.get(machine.system_id))
        stuck = self._timers.overdue(machine)
        if stuck:
            status = replace(status, state=InstallState.FAILED, detail=stuck)
        elif status.state is InstallState.INSTALLED:
            root = matching.root_contract(machine, target)
            status = replace(
                status,
                addresses=matching.answering(machine, target),
                root=root,
                drives=tuple(drive.seen for drive in machine.drives),
                blanks=True,
            )
        return Observed(status, listed.of(machine))

    def _status(self, seen: Seen, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Return the status after an act, with the reason where it has failed already."""
        failure = None
        if STATES[seen.value.status] is InstallState.FAILED:
            id_ = seen.value.system_id
            failure = self._failures.last([seen.value], {id_: target}, deadline).get(id_)
        return Observed(status_of(seen.value, failure), seen.evidence)

    def _found(self, target: InstallTarget, deadline: Deadline) -> Seen:
        user = self._whoami(deadline)
        seen = self._finder.find(target, deadline)
        if seen is None:
            raise EdgeError("MAAS does not know the machine", where=target.name, remedy="prepare it first")
        matching.check_owner(seen.value, target, user)
        return seen

    def _whoami(self, deadline: Deadline) -> str:
        """Return the user of our key; asked once. Raises `AuthenticationError` where the user is no administrator."""
        with self._asking:
            if not self._user:
                owner = self._machines.whoami(deadline)
                if not owner.admin:
                    raise AuthenticationError(
                        f"MAAS's API key belongs to {owner.name}, which is no administrator: nothing was changed",
                        where=self._settings.base,
                        remedy="use an administrator's key, then run clusterctl maas check",
                    )
                if not owner.local:
                    self._prove_rights(deadline)
                self._user = owner.name
            return self._user

    def _prove_rights(self, deadline: Deadline) -> None:
        """Raise `AuthenticationError` where an external service gives our key no rights on the pools of our machines.

        A pool without any machine leaves it open: the first machine shows it.
        """
        rights = pool_rights(self._machines, (self._settings.pool or DEFAULT_POOL, DEFAULT_POOL), (), deadline)
        if rights.refused:
            raise AuthenticationError(
                f"MAAS's API key may not administer machines of pool {', '.join(rights.refused)}: nothing was changed",
                where=self._settings.base,
                remedy=REMEDY,
            )

    # --- acting -----------------------------------------------------------------------------------------------------

    def _check_releasable(self, machine: MaasMachine, target: InstallTarget) -> None:
        """Raise `InstallError` where only an operator may bring the machine out of its state."""
        remedy = UNLOCK if machine.locked else OPERATOR_REMEDIES.get(machine.status, "")
        if remedy:
            raise InstallError(
                f"the machine is {'locked' if machine.locked else machine.status_name} in MAAS, which an operator did",
                FailureKind.OPERATOR,
                where=target.name,
                remedy=remedy.format(machine.system_id),
            )

    def _prove_ours(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> None:
        """Raise `InstallError` unless clusterctl has allocated the machine, or it has no owner.

        Without an owner: MAAS takes a machine back to Allocated when a deployment fails that was released meanwhile.
        """
        if not machine.owner or self._machines.allocated_by(AGENT, machine.system_id, deadline):
            return
        raise InstallError(
            f"in MAAS the machine is allocated to {machine.owner}, but not by clusterctl",
            FailureKind.FOREIGN,
            where=target.name,
            remedy=f"if no one uses it: maas PROFILE machine release {machine.system_id}",
        )

    def _enrol(self, target: InstallTarget, deadline: Deadline) -> Seen:
        """Create the machine. Where the answer is lost or another client was faster, it is there: adopt it."""
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


def _candidates(listed: MachineListing, target: InstallTarget) -> list[MaasMachine]:
    """Return the listed machines that could be the target's."""
    return [
        machine
        for machine in listed.machines.values()
        if set(machine.macs) & set(target.macs) or machine.hostname == target.name
    ]
