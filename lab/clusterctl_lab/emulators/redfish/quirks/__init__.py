"""What each `BmcQuirk` of a machine does at its BMC. A client copes with nearly all of them."""

from clusterctl_lab.emulators.redfish.quirks.behaviour import Certificate
from clusterctl_lab.emulators.redfish.quirks.registry import QUIRKS, ActiveQuirks, certificate_of

__all__ = ["QUIRKS", "ActiveQuirks", "Certificate", "certificate_of"]
