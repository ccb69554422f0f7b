"""A BMC that holds one session only."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Traits


class SessionLimit(Habit):
    manner = Manner.SESSION_LIMIT
    does = "a second session is refused while one is open"
    source = "Dell RAC0218 (stmcginnis/gofish#75), with the smallest limit there can be"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, max_sessions=1)
