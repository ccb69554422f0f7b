"""Why MAAS failed with a machine: by the types of its events, by the login that it uses, by curtin's log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.edges.maas.machines import Machines
from clusterctl.fleet.errors import AuthenticationError, EdgeError, InstallerUnavailableError, ParseError
from clusterctl.formats.maas import machines as formats
from clusterctl.formats.maas.curtin import failing_line
from clusterctl.formats.maas.machines import MaasMachine, MachineStatus
from clusterctl.ports import Deadline, FailureKind, InstallError, InstallTarget

OTHER_LOGIN = "MAAS logs in to the BMC with another password than the site"
GIVE_LOGIN = "find the BMC's password with clusterctl accounts check, then correct the power parameters of {} in MAAS"


@dataclass(frozen=True, slots=True)
class MaasFailure:
    """`cause` in MAAS's own words, which are foreign text, bounded and without control characters."""

    cause: str
    kind: FailureKind = FailureKind.MACHINE
    remedy: str = ""

    def error(self, target: InstallTarget) -> InstallError:
        return InstallError(self.cause, self.kind, where=target.name, remedy=self.remedy)


class Failures:
    """Reads the causes. What cannot be read hides no cause that is known."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines

    def cursor(self, machine: MaasMachine, deadline: Deadline) -> int:
        """Return the number of the machine's newest event; 0 where it has none."""
        return self._machines.newest_of(machine.system_id, deadline)

    def last(
        self, machines: Iterable[MaasMachine], targets: Mapping[str, InstallTarget], deadline: Deadline
    ) -> Mapping[str, MaasFailure]:
        """Return why the last attempt with each machine failed, by system id. `targets`: by system id.

        Machines are left out where no event names a cause.
        """
        chosen = {machine.system_id: machine for machine in machines}
        found = self._machines.failures(chosen, deadline) if chosen else {}
        return {
            system_id: self._judged(chosen[system_id], found.get(system_id), targets.get(system_id), deadline)
            for system_id in chosen
            if system_id in found
        }

    def since(self, cursor: int, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> MaasFailure | None:
        """Return why the attempt failed that began after the event `cursor`; None where no event names a cause."""
        found = self._machines.failures([machine.system_id], deadline, after=cursor).get(machine.system_id)
        return None if found is None else self._judged(machine, found, target, deadline)

    def _judged(
        self,
        machine: MaasMachine,
        found: tuple[formats.MaasEvent, bool] | None,
        target: InstallTarget | None,
        deadline: Deadline,
    ) -> MaasFailure:
        cause, power = (str(found[0]), found[1]) if found is not None else (machine.message, False)
        if power:
            return self._power(machine, cause, target, deadline)
        if machine.status is MachineStatus.FAILED_DEPLOYMENT:
            line = self._curtin(machine, deadline)
            return MaasFailure(f"{cause} curtin: {line}" if line else cause)
        return MaasFailure(cause)

    def _power(self, machine: MaasMachine, cause: str, target: InstallTarget | None, deadline: Deadline) -> MaasFailure:
        """Return the failure of a power action. MAAS's login is read, and never kept."""
        if target is not None and self._other_password(machine, target, deadline):
            return MaasFailure(
                f"{OTHER_LOGIN}; MAAS reports: {cause}",
                FailureKind.LOGIN,
                GIVE_LOGIN.format(machine.hostname),
            )
        return MaasFailure(cause, FailureKind.POWER)

    def _other_password(self, machine: MaasMachine, target: InstallTarget, deadline: Deadline) -> bool:
        """Return whether MAAS has another password of the site's account; of an account of its own that is unknown."""
        try:
            mine = self._machines.power_parameters(machine.system_id, deadline)
        except (InstallerUnavailableError, AuthenticationError):
            raise
        except (EdgeError, ParseError):
            return False
        return mine.user == target.bmc.user and mine.password != target.bmc.password

    def _curtin(self, machine: MaasMachine, deadline: Deadline) -> str:
        try:
            return failing_line(self._machines.install_log(machine.system_id, deadline))
        except (InstallerUnavailableError, AuthenticationError):
            raise
        except (EdgeError, ParseError):
            return ""
