"""The password with which MAAS logs in to a machine's BMC: changed where it is the site's account, and read back."""

from __future__ import annotations

from clusterctl.edges.maas import matching
from clusterctl.edges.maas.api import MaasApi, MaasTurn, at_once
from clusterctl.edges.maas.machines import Machines
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.formats.maas.machines import MaasMachine, PowerParameters
from clusterctl.ports import Clock, Deadline
from clusterctl.ports.accounts import LoginUpdate, PowerTarget


class MaasPowerLogins:
    """Meets `PowerLogins`. Safe to use from many threads, for different machines."""

    def __init__(self, settings: MaasSettings, clock: Clock, turn: MaasTurn = at_once) -> None:
        self._machines = Machines(MaasApi(settings, clock, turn))

    def give(self, target: PowerTarget, deadline: Deadline) -> Observed[LoginUpdate]:
        """Give MAAS the password of the machine that its MAC addresses or its serial prove to be the target's.

        A machine with another account, or without a BMC, is left as it is.
        """
        listed = self._machines.by_macs(target.macs, deadline)
        named = self._machines.by_hostnames([target.name], deadline)
        found = listed | named
        machine = matching.ours(found.machines.values(), target)
        evidence = found.of(machine)
        if machine is None:
            return Observed(LoginUpdate.UNKNOWN, evidence)
        return self._given(machine, target, evidence, deadline)

    def _given(
        self, machine: MaasMachine, target: PowerTarget, evidence: tuple[Evidence, ...], deadline: Deadline
    ) -> Observed[LoginUpdate]:
        before = self._machines.power_parameters(machine.system_id, deadline)
        if not before.address or before.user != target.bmc.user:
            return Observed(LoginUpdate.OTHER, evidence)
        _check_address(machine, before, target)
        if before.password == target.bmc.password:
            return Observed(LoginUpdate.HAD, evidence)
        deadline.check(f"giving MAAS the new password of {target.name}'s BMC")
        form = [("power_parameters_power_pass", target.bmc.password)]
        try:
            done = self._machines.update(machine.system_id, form, target.bmc, deadline).evidence
        except OutcomeUnknownError:
            done = ()  # what MAAS has now is read below, whatever its answer was
        if self._machines.power_parameters(machine.system_id, deadline).password != target.bmc.password:
            raise EdgeError(
                f"MAAS does not show the new password of {machine.hostname} ({machine.system_id})",
                where=target.name,
                remedy="run the command again; if it stays so, write it into the machine's power settings by hand",
            )
        return Observed(LoginUpdate.GIVEN, (*evidence, *done))


def _check_address(machine: MaasMachine, found: PowerParameters, target: PowerTarget) -> None:
    """Raise `EdgeError` where MAAS has another BMC's address: it would send the password there."""
    if found.address in (matching.power_address(target.bmc), target.bmc.host):
        return
    raise EdgeError(
        f"MAAS's machine {machine.hostname} ({machine.system_id}) has its BMC at {found.address}, the site at "
        f"{target.bmc.host}: MAAS did not get the new password",
        where=target.name,
        remedy="correct the power address of the machine in MAAS, or the site file",
    )
