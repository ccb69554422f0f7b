"""adapter-sysfs: `[--each SECONDS] FOLDER`, the adapters of this machine as files, as /sys/class/infiniband.

Hosts in namespaces see the /sys of the controller, which has no adapters. With `--path.sysfs=FOLDER`, node_exporter
reads these instead. Names and texts are those of the kernel's ABI (Documentation/ABI/stable/sysfs-class-infiniband).
Each file is replaced whole. With `--each` it writes them again and again, so that a fault shows while the host runs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence

from clusterctl_lab.emulators.host_tools.host import adapter_flash
from clusterctl_lab.emulators.host_tools.host.facts import Hca, load
from clusterctl_lab.emulators.host_tools.host.perfquery import grown

SPEEDS = {800: "XDR", 400: "NDR", 200: "HDR", 100: "EDR"}
COUNTERS = {
    "symbol_error": "SymbolErrorCounter",
    "link_error_recovery": "LinkErrorRecoveryCounter",
    "link_downed": "LinkDownedCounter",
    "port_rcv_errors": "PortRcvErrors",
    "port_rcv_remote_physical_errors": "PortRcvRemotePhysicalErrors",
    "port_rcv_switch_relay_errors": "PortRcvSwitchRelayErrors",
    "port_xmit_discards": "PortXmitDiscards",
    "port_xmit_constraint_errors": "PortXmitConstraintErrors",
    "port_rcv_constraint_errors": "PortRcvConstraintErrors",
    "local_link_integrity_errors": "LocalLinkIntegrityErrors",
    "excessive_buffer_overrun_errors": "ExcessiveBufferOverrunErrors",
    "VL15_dropped": "VL15Dropped",
    "port_xmit_data": "PortXmitData",
    "port_rcv_data": "PortRcvData",
    "port_xmit_packets": "PortXmitPkts",
    "port_rcv_packets": "PortRcvPkts",
    "port_xmit_wait": "PortXmitWait",
}
"""File of a counter, and its name in PortCountersExtended."""


def main(argv: Sequence[str]) -> int:
    words = list(argv)
    each = words[1] if words[:1] == ["--each"] and len(words) > 1 else ""
    if len(words) != (3 if each else 1) or (each and not each.isdecimal()):
        sys.stderr.write("the lab's adapter-sysfs takes FOLDER, or --each SECONDS FOLDER\n")
        return 2
    write(words[-1])
    while each:
        time.sleep(int(each))
        write(words[-1])
    return 0


def write(folder: str) -> None:
    """Write the files of all adapters."""
    for hca in load().hcas:
        for name, text in files_of(hca).items():
            path = f"{folder}/class/infiniband/{hca.name}/{name}"
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120 — pathlib takes a tenth of a second to import
            with open(f"{folder}/.part", "w") as file:  # noqa: PTH123
                file.write(f"{text}\n")
            os.replace(f"{folder}/.part", path)  # noqa: PTH105


def files_of(hca: Hca) -> Mapping[str, str]:
    """Return the text of each file of an adapter."""
    up, counts = hca.plugged, grown(hca)
    active = up and (hca.configured or hca.ethernet)
    rate = f"{hca.rate_gbps} Gb/sec (4X {SPEEDS.get(hca.rate_gbps, 'NDR')})" if up else "10 Gb/sec (4X SDR)"
    port = {
        "state": "4: ACTIVE" if active else "2: INIT" if up else "1: DOWN",
        "phys_state": "5: LinkUp" if up else "2: Polling",
        "rate": rate,
        "link_layer": "Ethernet" if hca.ethernet else "InfiniBand",
        **{f"counters/{file}": str(counts.get(name, 0)) for file, name in COUNTERS.items()},
    }
    return {
        "board_id": hca.psid,
        "fw_ver": adapter_flash.running(hca),
        "hca_type": "MT4129",
        **{f"ports/1/{name}": text for name, text in port.items()},
    }
