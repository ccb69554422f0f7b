"""A BMC that leaves properties out."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit

ONE_IN = 4


class MissingMembers(Habit):
    """Not the properties that say what a resource is, nor the members of a collection: a list without them would be
    another list, and nobody could tell.
    """

    manner = Manner.MISSING_MEMBERS
    does = "about one resource in four lacks one of its properties, always the same one"
    source = "recorded: no Status at HPE's NICs, no DurableName at Dell's NVMe drives, no serial at GB200's system"

    def after(self, request: Request, answer: Answer) -> Answer:
        if request.writes or answer.body is None or answer.status != 200 or not self.struck(request, ONE_IN):
            return answer
        names = [name for name in answer.body if not name.startswith(("@", "Members")) and name != "Id"]
        if not names:
            return answer
        lost = names[len(request.path) % len(names)]
        return replace(answer, body={name: value for name, value in answer.body.items() if name != lost})
