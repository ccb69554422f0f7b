"""adapter-boards: the PSID of each adapter of this machine.

Stands in for a burn-in program that would read the controller's own /sys. The PSID of the lab's adapters is that of a
ConnectX-7 in a recorded server of eight H100 (leptonai/gpud, /sys/class/infiniband).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load, natural


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("the lab's adapter-boards takes no arguments\n")
        return 2
    hcas = sorted(load().hcas, key=lambda hca: natural(hca.name))
    json.dump({"adapters": [{"name": hca.name, "psid": hca.psid} for hca in hcas]}, sys.stdout)
    return 0
