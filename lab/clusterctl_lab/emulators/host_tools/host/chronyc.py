"""chronyc: `-n -c tracking` and `-n -c sources` of a host whose clock follows the site's time server.

The CSV is that of chronyc 4.x (chronyc(1)). The real tool answers any other call: on a lab host it asks the chronyd
that the role time_sync started there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load

REAL = "/usr/bin/chronyc"
SERVER = "192.0.2.123"
NEVER = 4294967295
TRACKING = (
    f"C000027B,{SERVER},3,1776153600.123456000,0.000012345,0.000004500,0.000006700,12.345,0.010,0.250,0.001200000,"
    "0.000450000,64.0,Normal"
)
LOST = (
    "00000000,,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000,0.000,0.000,1.000000000,1.000000000,0.0,"
    "Not synchronised"
)
SOURCE = f"^,*,{SERVER},2,6,377,11,0.000010000,0.000010000,0.001000000"
LOST_SOURCE = f"^,?,{SERVER},0,10,0,{NEVER},0.000000000,0.000000000,0.000000000"


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    if words not in (["-n", "-c", "tracking"], ["-n", "-c", "sources"]):
        if not os.path.exists(REAL):  # noqa: PTH110 — pathlib doubles the start of a stand-in
            sys.stderr.write("the lab's chronyc knows -n -c tracking and -n -c sources; chrony is not installed\n")
            return 1
        os.execv(REAL, [REAL, *argv])  # noqa: S606 — another program's name and arguments, no shell
    lost = load().time_lost
    lines = (LOST if lost else TRACKING) if words[-1] == "tracking" else (LOST_SOURCE if lost else SOURCE)
    sys.stdout.write(f"{lines}\n")
    return 0
