"""A BMC with its factory's password."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Traits


class MustChangePassword(Habit):
    manner = Manner.MUST_CHANGE_PASSWORD
    does = "403 to everything but accounts and sessions until the password is changed"
    source = "DSP0266, Password change required handling; GB200 as delivered"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, must_change_password=True)
