"""A BMC that sends clients on: to the path with a slash, and to its name."""

from __future__ import annotations

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.manners.habit import Habit

ONE_IN = 6


class Redirects(Habit):
    """To itself only by default: what leads to another host must not be followed, and would stop the node."""

    manner = Manner.REDIRECTS
    does = "about one resource in six is answered with 308 and the same path, with a slash at its end"
    source = "DSP0266, Redfish-defined URIs: the form with a slash is the same resource; no recording of it"

    def before(self, request: Request) -> Answer | None:
        if request.writes or request.slash or not self.struck(request, ONE_IN):
            return None
        return Answer(308, headers={"Location": f"{request.path}/"})
