"""Shipped limits for the links of a fabric."""

from __future__ import annotations

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.formats.site.fabric_limits import parse_fabric_limits
from clusterctl_burnin.package_data import names_in, text_of

_FOLDER = "limits/fabric"


def shipped_fabric_limits(name: str, where: str = "--limits") -> FabricLimits:
    """Return the limits in the shipped file of that name, without suffix.

    Raises `UsageError` for another name; `where` is what names it.
    """
    known = list(names_in(_FOLDER, suffix=".yml"))
    if name not in known:
        remedy = f"take one of {', '.join(known)}, or give the path of a file of your own"
        raise UsageError(f"no fabric limits are called {name!r}", where=where, remedy=remedy)
    return parse_fabric_limits(text_of(f"{_FOLDER}/{name}.yml"), where=f"{_FOLDER}/{name}.yml")
