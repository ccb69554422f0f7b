"""A BMC whose JSON ends too early."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit

ONE_IN = 8


class BrokenJson(Habit):
    manner = Manner.BROKEN_JSON
    does = "about one resource in eight is no JSON: it ends in the middle, with a length that is right"
    source = "no recording of it: what a truncated answer looks like"

    def after(self, request: Request, answer: Answer) -> Answer:
        content = answer.content
        if request.writes or not content or answer.status != 200 or not self.struck(request, ONE_IN):
            return answer
        return replace(answer, raw=content[: len(content) * 2 // 3])
