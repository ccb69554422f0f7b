"""Which vendor's BMC this is, by what it says of itself. One file a vendor; who is none of them gets the standard."""

from __future__ import annotations

from clusterctl.edges.redfish.quirks.ami import AMI
from clusterctl.edges.redfish.quirks.dell import DELL
from clusterctl.edges.redfish.quirks.hpe import HPE
from clusterctl.edges.redfish.quirks.quirk import Quirks
from clusterctl.edges.redfish.quirks.supermicro import SUPERMICRO
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.redfish.tree import ROOT, Answer, Resource, Unreadable

STANDARD = Quirks("standard")
VENDORS = (DELL, HPE, SUPERMICRO, AMI)

__all__ = ["STANDARD", "VENDORS", "Quirks", "quirks_of", "quirks_of_root"]


def quirks_of_root(root: Answer) -> Quirks:
    """From the service root, which every BMC shows before anybody logs in."""
    return quirks_of(Resource(ROOT, {} if isinstance(root, Unreadable) else root))


def quirks_of(resource: Resource) -> Quirks:
    """From a service root, or from a Manager where the root keeps silent."""
    try:
        return next((vendor for vendor in VENDORS if vendor.made(resource)), STANDARD)
    except ParseError:
        return STANDARD  # a vendor's name that is no text names nobody
