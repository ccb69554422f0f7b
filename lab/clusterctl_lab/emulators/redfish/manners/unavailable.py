"""A BMC that has no time at the moment, and says for how long."""

from __future__ import annotations

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.context import Desk
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit, Seldom
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError

RETRY_AFTER_S = 1


class Unavailable(Habit):
    manner = Manner.UNAVAILABLE
    does = "a 503 with Retry-After: 1, after every three to eight requests that are answered"
    source = "DSP0266, Status codes; Base registry, ServiceTemporarilyUnavailable"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._seldom = Seldom(self.random)

    def before(self, request: Request) -> Answer | None:
        del request
        if self._seldom.strikes():
            raise RefusedError(Problem.UNAVAILABLE, str(RETRY_AFTER_S))
        return None
