"""A BMC that gives weak ETags, which by the specification match nothing."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.emulators.redfish.manners.habit import Habit
from clusterctl_lab.emulators.redfish.traits import Etag, IfMatch, Traits


class WeakEtag(Habit):
    manner = Manner.WEAK_ETAG
    does = "ETags are weak, and If-Match takes them without the W/ only"
    source = "RFC 9110 section 13.1.1; sushy; HPE iLO gives weak ones (recorded)"

    def traits(self, traits: Traits) -> Traits:
        return replace(traits, etag=Etag.WEAK, if_match=IfMatch.HONOURED)
