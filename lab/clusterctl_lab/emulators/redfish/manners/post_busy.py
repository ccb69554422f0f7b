"""A BMC that lets nobody change its machine during POST."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Traits


class PostBusy(Habit):
    manner = Manner.POST_BUSY
    does = "a PATCH of the system, its boot or its BIOS is refused while the machine is in POST"
    source = "HPE iLO: UnableToModifyDuringSystemPOST"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, post_busy=True)
