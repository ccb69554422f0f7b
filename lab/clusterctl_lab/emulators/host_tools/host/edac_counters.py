"""edac-counters: the memory errors of the machine's modules during the last hour.

Stands in for a burn-in program that would read the controller's own memory in /sys. The fields are those of the
kernel's ABI (Documentation/ABI/testing/sysfs-devices-edac). The labels are those that rasdaemon's `ras-mc-ctl
--register-labels` writes: the text printed next to the socket.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Dimm, load
from clusterctl_lab.emulators.host_tools.host.loaded import GPUS, loaded

PER_CONTROLLER = 8
SECONDS = 3600


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("the lab's edac-counters takes no arguments\n")
        return 2
    dimms = load().dimms
    rows = [dimms[at : at + PER_CONTROLLER] for at in range(0, len(dimms), PER_CONTROLLER)]
    json.dump({"controllers": [_controller(number, row) for number, row in enumerate(rows)]}, sys.stdout)
    return 0


def _controller(number: int, dimms: Sequence[Dimm]) -> dict[str, object]:
    return {
        "name": f"mc{number}",
        "driver": f"Intel_10nm Socket#{number // 2} IMC#{number % 2}",
        "seconds": SECONDS,
        "corrected_nowhere": 0,
        "uncorrected_nowhere": 0,
        "modules": [_module(at, dimm) for at, dimm in enumerate(dimms)],
    }


def _module(at: int, dimm: Dimm) -> dict[str, object]:
    return {
        "name": f"dimm{at}",
        "label": dimm.locator,
        "location": f"channel {at // 2} slot {at % 2}",
        "corrected": dimm.corrected + (dimm.load_corrected if loaded(GPUS) else 0),
        "uncorrected": dimm.uncorrected,
    }
