"""A BMC that refuses every precondition."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import IfMatch, Traits


class IfMatchRefused(Habit):
    manner = Manner.IF_MATCH_REFUSED
    does = "412 to every request with If-Match, whatever it names"
    source = "clients whose last rung is no If-Match (sushy): iDRAC9 of newer firmware"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, if_match=IfMatch.REFUSED)
