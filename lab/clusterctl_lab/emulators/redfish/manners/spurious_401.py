"""A BMC that now and then does not know whom it has just let in."""

from __future__ import annotations

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.context import Desk
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit, Seldom
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError


class Spurious401(Habit):
    """Among the requests that bring credentials, logins too."""

    manner = Manner.SPURIOUS_401
    does = "a 401 to right credentials, after every three to eight requests that are answered"
    source = "clients of HPE iLO that try up to five times (NVIDIA bare-metal-manager)"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._seldom = Seldom(self.random)

    def before(self, request: Request) -> Answer | None:
        if (request.token or request.authorization or request.writes) and self._seldom.strikes():
            raise RefusedError(Problem.UNAUTHORIZED)
        return None
