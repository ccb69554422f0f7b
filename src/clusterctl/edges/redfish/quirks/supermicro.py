"""Supermicro.

Some answer 200 to a boot override without its mode and fall back to Legacy: the mode is always sent, to every vendor.
"""

from __future__ import annotations

from clusterctl.edges.redfish.quirks.quirk import Quirks

QUIRKS = Quirks("supermicro", signs=("supermicro", "super micro"))
