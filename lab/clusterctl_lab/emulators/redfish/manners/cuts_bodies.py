"""A BMC that drops connections in the middle of a body."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.context import Desk
from clusterctl_lab.emulators.redfish.exchange import Answer, Delivery, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit, Seldom


class CutsBodies(Habit):
    manner = Manner.CUTS_BODIES
    does = "a read that ends in the middle of its body, after every three to eight that are whole"
    source = "no recording of it: a web server that is killed while it answers"

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._seldom = Seldom(self.random)

    def after(self, request: Request, answer: Answer) -> Answer:
        if request.writes or answer.content is None or not self._seldom.strikes():
            return answer
        return replace(answer, delivery=Delivery.CUT)
