"""The contents of the lab's repository of each vendor, one file or folder per vendor: stand-ins for packages that
Debian's archive lacks.
"""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_lab.emulators.apt.emulated_package import StandIn
from clusterctl_lab.emulators.apt.vendors import grafana, mellanox, nvidia

VENDORS: Mapping[str, tuple[StandIn, ...]] = {
    "grafana": grafana.packages(),
    "mellanox": mellanox.packages(),
    "nvidia": nvidia.packages(),
}
"""By the folder's name on the lab's package server."""
