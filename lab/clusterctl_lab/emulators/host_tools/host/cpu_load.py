"""cpu-load: the processes that use this host's processors.

Stands in for a burn-in program that would read /proc: the lab's hosts share the controller's processors, which are busy
with all of them. The services are those of a recorded idle host.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load

SERVICES = (("nv-hostengine", 1893, 1.5), ("prometheus-node", 2051, 1.0))
FORGOTTEN = ("python3", 4711, 99.7)


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("the lab's cpu-load takes SECONDS\n")
        return 2
    seconds = float(argv[0])
    processes = [_process(*one, user="root") for one in SERVICES]
    if load().cpu_busy:
        name, pid, percent = FORGOTTEN
        processes = [_process(name, pid + at, percent, user="trainer") for at in range(4)] + processes
    json.dump({"seconds": seconds, "looked_at": 412, "processes": processes}, sys.stdout)
    return 0


def _process(name: str, pid: int, percent: float, *, user: str) -> dict[str, object]:
    return {"pid": pid, "name": name, "user": user, "kernel": False, "percent": percent}
