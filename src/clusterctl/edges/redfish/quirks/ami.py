"""AMI MegaRAC, as on ASRock Rack, Gigabyte and NVIDIA's DGX: a PATCH of `Boot` must repeat all its properties."""

from __future__ import annotations

from clusterctl.edges.redfish.quirks.quirk import Quirks

QUIRKS = Quirks("ami", signs=("ami", "american megatrends", "asrock", "gigabyte", "giga computing"), whole_boot=True)
