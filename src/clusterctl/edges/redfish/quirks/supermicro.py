"""Supermicro.

Some answer 200 to a boot override without its mode and fall back to Legacy: the mode is always sent, by everybody.
"""

from __future__ import annotations

from clusterctl.edges.redfish.quirks.quirk import Quirks

SUPERMICRO = Quirks("supermicro", signs=("supermicro", "super micro"))
