"""A BMC that calls a reset to the present state a bad request."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Traits


class AlreadyIs400(Habit):
    manner = Manner.ALREADY_IS_400
    does = "a reset to the state that the machine is in is a 400"
    source = "clients that count 400 and 409 as done (Ironic, sushy); Dell answers 409"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, already=400)
