"""nv-fabricmanager: `--version`, in the driver's version, until the real package replaces it.

The text is that of NVIDIA/gpu-driver-container and of the fabric manager's user guide.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import driver_version


def main(argv: Sequence[str]) -> int:
    if list(argv) not in (["--version"], ["-v"]) or not driver_version():
        sys.stderr.write("the lab's nv-fabricmanager knows --version, where the driver is installed\n")
        return 1
    sys.stdout.write(f"Fabric Manager version is : {driver_version()}\n")
    return 0
