"""The fabric limits that come with this package."""

from __future__ import annotations

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric_limits import FabricLimits
from clusterctl.formats.site.fabric_limits import parse_fabric_limits
from clusterctl_burnin.package_data import names_in, text_of

_FOLDER = "limits/fabric"


def shipped_fabric_limits(name: str) -> FabricLimits:
    """By the file's name, without suffix."""
    known = list(names_in(_FOLDER, suffix=".yml"))
    if name not in known:
        remedy = f"take one of {', '.join(known)}, or give the path of a file of your own"
        raise UsageError(f"no fabric limits are called {name!r}", where="--limits", remedy=remedy)
    return parse_fabric_limits(text_of(f"{_FOLDER}/{name}.yml"), where=f"{_FOLDER}/{name}.yml")
