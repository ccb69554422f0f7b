"""A BMC that takes no change without a precondition."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Etag, IfMatch, Traits


class IfMatchRequired(Habit):
    manner = Manner.IF_MATCH_REQUIRED
    does = "every PATCH needs If-Match with the present ETag: 428 without it, 412 with another"
    source = "DSP0266; DGX H100 and other AMI MegaRAC"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, etag=Etag.STRONG, if_match=IfMatch.REQUIRED)
