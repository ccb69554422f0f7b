"""UFM as a service of its host: whether it is the active one, and its restart, by programs that the site names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.edges.processes import run
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.ports import Deadline

ANSWER_S = 60.0
RESTART_S = 600.0
_ACTIVE, _INACTIVE = 0, 3
"""Exit status of `systemctl is-active`: 3 for a unit that does not run (systemctl(1), "Exit status")."""
_LOST = 255
"""Exit status of ssh where the connection failed or was lost (ssh(1), "EXIT STATUS")."""


@dataclass(frozen=True, slots=True)
class UfmService:
    """Implements `ports.ManagerService`. `active` and `restart_`: argument lists."""

    active: Sequence[str]
    restart_: Sequence[str]

    def is_active(self, deadline: Deadline) -> bool:
        """Return whether UFM runs on the host that the programs reach. Raise `EdgeError` where that is not known."""
        ran = run(self.active, deadline.within(ANSWER_S))
        if ran.exit_status not in (_ACTIVE, _INACTIVE):
            raise ran.failure(self.active)
        return ran.exit_status == _ACTIVE

    def restart(self, deadline: Deadline) -> None:
        """Restart UFM. Raise `OutcomeUnknownError` where the connection was lost meanwhile, and `EdgeError`."""
        ran = run(self.restart_, deadline.within(RESTART_S))
        if ran.exit_status == _LOST or ran.exit_status < 0:
            message = f"the connection to UFM's host was lost: {ran.error_output or 'no message'}"
            raise OutcomeUnknownError(message, where=" ".join(self.restart_), remedy="nothing: UFM is read back")
        if ran.exit_status:
            raise EdgeError(ran.failure(self.restart_).message, where=" ".join(self.restart_), remedy="see UFM's log")
