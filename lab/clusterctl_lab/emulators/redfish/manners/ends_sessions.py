"""A BMC that ends sessions on its own."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Traits


class EndsSessions(Habit):
    manner = Manner.ENDS_SESSIONS
    does = "a session is over after 20 requests, whatever its time-out"
    source = "DSP0266 lets a service end sessions; no recording of it"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, session_requests=20)
