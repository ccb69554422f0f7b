"""A BMC that locks everyone out after a few wrong passwords."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Lockout, Traits


class LocksOut(Habit):
    manner = Manner.LOCKS_OUT
    does = "after 3 wrong passwords nobody logs in for 30 s"
    source = "recorded at Supermicro: AccountLockoutThreshold, AccountLockoutDuration"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, lockout=Lockout(tries=3, seconds=30.0))
