"""Whose servers the lab has."""

from __future__ import annotations

import enum


class Vendor(enum.Enum):
    """The values are the names that `lab up --vendor` takes.

    DELL        PowerEdge with iDRAC9
    SUPERMICRO  SYS-821GE with Supermicro's own BMC
    HPE         ProLiant XL675d with iLO 5
    OPENBMC     NVIDIA DGX H100: AMI's BMC for the host, NVIDIA's OpenBMC for the HGX board
    """

    DELL = "dell"
    SUPERMICRO = "supermicro"
    HPE = "hpe"
    OPENBMC = "openbmc"
