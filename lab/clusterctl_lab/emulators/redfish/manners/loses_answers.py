"""A BMC that does what it is told and drops the connection instead of saying so."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.exchange import Answer, Delivery, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit, is_login


class LosesAnswers(Habit):
    manner = Manner.LOSES_ANSWERS
    does = "every change takes effect, and the connection is reset before the answer; logins and log-outs are answered"
    source = "clients of HPE iLO, which resets connections; no recording of it"

    def after(self, request: Request, answer: Answer) -> Answer:
        changed = request.writes and request.method != "DELETE" and answer.status < 300
        lost = changed and not is_login(self.desk, request)
        return replace(answer, delivery=Delivery.LOST) if lost else answer
