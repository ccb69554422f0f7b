"""setpci: `-s BDF ECAP_ACS+0x6.w[=VALUE]`, the ACS control registers of the lab's bridges; a boot switches ACS on.

The real tool would write to the registers of the controller, which lab hosts share.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.bridges import STATE, bridges
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

ACS_CONTROL = "ECAP_ACS+0x6.w"


def main(argv: Sequence[str]) -> int:
    if len(argv) != 3 or argv[0] != "-s" or argv[2].partition("=")[0] != ACS_CONTROL:
        sys.stderr.write(f"the lab's setpci knows -s BDF {ACS_CONTROL}[=VALUE]\n")
        return 1
    bridge, (_, writes, value) = argv[1], argv[2].partition("=")
    controls = {found.address: found.control for found in bridges()}
    if controls.get(bridge) is None:
        sys.stderr.write(f"setpci: {bridge}: Instance #0 of Capability 000d not found\n")
        return 1
    if writes:
        registers = json.loads(text_of(STATE) or "{}")
        with open(STATE, "w", encoding="utf-8") as file:  # noqa: PTH123 — see small_files
            json.dump({**registers, bridge: f"{int(value, 16):04x}"}, file)
    else:
        sys.stdout.write(f"{controls[bridge]}\n")
    return 0
