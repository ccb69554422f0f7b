"""bluefields: the machine's one BlueField-3 for storage, in NIC mode.

Stands in for a burn-in program that would read the controller's own PCI bus. Rows of the settings as
NVIDIA's mlxconfig prints them with `-e`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load

ADDRESS = "0000:29:00.0"
FIRMWARE = "32.43.1014"
HEAD = "Configurations:                              Default             Current             Next Boot"


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("the lab's bluefields takes no arguments\n")
        return 2
    engine = "ENABLED(0)" if load().bluefield_dpu else "DISABLED(1)"
    rows = (
        ("INTERNAL_CPU_MODEL", ("EMBEDDED_CPU(1)",) * 3),
        ("INTERNAL_CPU_OFFLOAD_ENGINE", ("ENABLED(0)", engine, engine)),
    )
    card = {
        "address": ADDRESS,
        "model": "BlueField-3",
        "firmware": FIRMWARE,
        "speed": "32.0 GT/s PCIe",
        "width": "16",
        "max_speed": "32.0 GT/s PCIe",
        "max_width": "16",
        "settings": [
            HEAD,
            *(f"        {name:<37}" + "".join(f"{value:<20}" for value in values) for name, values in rows),
        ],
        "error": "",
    }
    json.dump({"cards": [card]}, sys.stdout)
    return 0
