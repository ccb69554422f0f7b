"""setpci: `-s BDF ECAP_ACS+0x6.w[=VALUE]`, the ACS control registers of the lab's bridges; a boot switches ACS on.

The real one would write into this machine's registers, which lab hosts share.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterctl.lab.faces.tools.host.bridges import bridges

STATE = Path(os.environ.get("CLUSTERCTL_LAB_ACS", "/run/clusterctl-lab-acs.json"))
ACS_CONTROL = "ECAP_ACS+0x6.w"
AFTER_BOOT = "001d"
"""Source validation, request and completion redirection, upstream forwarding: what Linux sets (pci_enable_acs)."""


def main(argv: Sequence[str]) -> int:
    if len(argv) != 3 or argv[0] != "-s" or argv[2].partition("=")[0] != ACS_CONTROL:
        sys.stderr.write(f"the lab's setpci knows -s BDF {ACS_CONTROL}[=VALUE]\n")
        return 1
    bridge, (_, writes, value) = argv[1], argv[2].partition("=")
    if bridge not in bridges():
        sys.stderr.write(f"setpci: {bridge}: Instance #0 of Capability 000d not found\n")
        return 1
    registers = json.loads(STATE.read_text()) if STATE.exists() else {}
    if writes:
        STATE.write_text(json.dumps({**registers, bridge: f"{int(value, 16):04x}"}))
    else:
        sys.stdout.write(f"{registers.get(bridge, AFTER_BOOT)}\n")
    return 0
