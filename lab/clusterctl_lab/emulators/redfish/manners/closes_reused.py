"""A BMC that drops a connection that is used again."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Traits


class ClosesReused(Habit):
    manner = Manner.CLOSES_REUSED
    does = "the second request on a connection gets no answer"
    source = "HPE iLO (NVIDIA libredfish sends Connection: close)"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, closes_reused=True)
