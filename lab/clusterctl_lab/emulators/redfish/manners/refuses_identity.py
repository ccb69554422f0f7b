"""A BMC that cannot send what is not compressed."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Traits


class RefusesIdentity(Habit):
    manner = Manner.REFUSES_IDENTITY
    does = "406 to Accept-Encoding: identity"
    source = "clients that ask again without the header after a 406 (sushy)"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, refuses_identity=True)
