"""swapon: `--show…` prints the active swap: none without a fault. The kernel's own table is the controller's."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load

PARTITION = "/dev/sda9 8589934592\n"


def main(argv: Sequence[str]) -> int:
    if any(word.startswith("--show") for word in argv) or list(argv) == ["-s"]:
        sys.stdout.write(PARTITION if load().swap else "")
        return 0
    sys.stderr.write("swapon: a host of the lab has no swap and cannot turn any on\n")
    return 1
