"""ethernet-links: the host's Ethernet port with hardware behind it, as /sys/class/net shows it.

Stands in for a burn-in program that would read the controller's own ports: those of hosts in namespaces have no
hardware. The fields are those of the kernel's ABI (sysfs-class-net, sysfs-class-net-statistics).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.boot import uptime
from clusterctl_lab.emulators.host_tools.host.facts import Facts, load
from clusterctl_lab.emulators.host_tools.host.loaded import GPUS, loads

MBIT_S = 25000


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("the lab's ethernet-links takes SECONDS or once\n")
        return 2
    facts = load()
    readings = [_reading(facts)]
    if argv[0] != "once":
        time.sleep(float(argv[0]))
        readings.append(_reading(facts))
    json.dump({"readings": readings}, sys.stdout)
    return 0


def _reading(facts: Facts) -> dict[str, object]:
    broken = int(uptime() * 20) if facts.ethernet_errors else 40 * loads(GPUS) * facts.load_ethernet_errors
    counters = {"rx_packets": int(uptime() * 900), "rx_crc_errors": broken, "rx_missed_errors": 0}
    port = {
        "name": facts.network.interface,
        "up": True,
        "speed": MBIT_S,
        "duplex": "full",
        "bond": "",
        "member": None,
        "downs": 1,
        "counters": {**counters, "rx_fifo_errors": 0, "tx_errors": 0},
    }
    return {"at": time.monotonic(), "ports": [port]}
