"""lscpu: `--json`, in the three fields that give the number of processors (util-linux 2.38, lscpu(1))."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load


def main(argv: Sequence[str]) -> int:
    if list(argv) != ["--json"]:
        sys.stderr.write("the lab's lscpu knows --json\n")
        return 1
    cores = load().cores
    fields = {"CPU(s):": str(cores), "On-line CPU(s) list:": f"0-{cores - 1}" if cores > 1 else "0"}
    rows = [{"field": field, "data": data} for field, data in fields.items()]
    sys.stdout.write(json.dumps({"lscpu": rows}, indent=3) + "\n")
    return 0
