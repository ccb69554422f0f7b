"""A BMC that takes its time."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit


class Slow(Habit):
    manner = Manner.SLOW
    does = "each answer takes 1 to 3 s; slow=0.05-0.3 gives another range, in seconds"
    source = "the sweep and inventory targets of this project: 50-300 ms and 1-3 s a request"

    def after(self, request: Request, answer: Answer) -> Answer:
        del request
        return replace(answer, delay=self.random.uniform(*self.desk.machine.bmc.latency_s))
