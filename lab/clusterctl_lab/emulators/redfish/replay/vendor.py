"""Whose recording it is, for what no recording shows: how errors read, how many sessions there are."""

from __future__ import annotations

from clusterctl_lab.emulators.redfish.profile import Profile
from clusterctl_lab.emulators.redfish.vendors import PROFILES
from clusterctl_lab.vendor import Vendor

_MAKERS = {
    "dell": Vendor.DELL,
    "supermicro": Vendor.SUPERMICRO,
    "hpe": Vendor.HPE,
    "ami": Vendor.OPENBMC,
    "nvidia": Vendor.OPENBMC,
    "openbmc": Vendor.OPENBMC,
}
UNKNOWN = Vendor.OPENBMC
"""An unknown vendor's errors have the texts of the DMTF's Base registry, as OpenBMC's have."""


def vendor_of(maker: str) -> Vendor | None:
    """From how a service names its vendor, in lower case; None where that is none of ours."""
    return next((vendor for name, vendor in _MAKERS.items() if name in maker.split()), None)


def profile_for(maker: str) -> Profile:
    return PROFILES[vendor_of(maker) or UNKNOWN]
