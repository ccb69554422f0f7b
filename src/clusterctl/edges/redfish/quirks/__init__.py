"""Chooses a BMC's vendor by the names in its service root or Manager. One file per vendor, found by convention: each
module of this package that defines `QUIRKS`. Any other BMC gets the standard.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from clusterctl.edges.redfish.quirks.quirk import Quirks
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.redfish.tree import ROOT, Answer, Resource, Unreadable

STANDARD = Quirks("standard")
VENDORS: tuple[Quirks, ...] = tuple(
    import_module(f"{__name__}.{module.name}").QUIRKS
    for module in pkgutil.iter_modules(__path__)
    if module.name != "quirk"
)

__all__ = ["STANDARD", "VENDORS", "Quirks", "quirks_of", "quirks_of_root"]


def quirks_of_root(root: Answer) -> Quirks:
    """Return the quirks by the service root, which every BMC shows before a login."""
    return quirks_of(Resource(ROOT, {} if isinstance(root, Unreadable) else root))


def quirks_of(resource: Resource) -> Quirks:
    """Return the quirks by a service root, or by a Manager where the root names no vendor."""
    try:
        return next((vendor for vendor in VENDORS if vendor.made(resource)), STANDARD)
    except ParseError:
        return STANDARD  # a vendor's name that is no text names no vendor
