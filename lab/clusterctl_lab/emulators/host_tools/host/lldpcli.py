"""lldpcli: `-f json0 show interfaces`, the ports of this host's lldpd; as recorded from lldpd 1.0.16."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from clusterctl_lab.emulators.host_tools.host.facts import Facts, load
from clusterctl_lab.emulators.host_tools.host.lldpctl import chassis, document


def main(argv: Sequence[str]) -> int:
    if list(argv) != ["-f", "json0", "show", "interfaces"]:
        sys.stderr.write("the lab's lldpcli knows -f json0 show interfaces alone\n")
        return 1
    sys.stdout.write(document([_interface(load())]))
    return 0


def _interface(facts: Facts) -> dict[str, Any]:
    network = facts.network
    return {
        "name": network.interface,
        "status": [{"value": "RX and TX"}],
        "chassis": [chassis(network.mac, facts.name, f"{facts.manufacturer} {facts.model}", "Station")],
        "port": [{"id": [{"type": "mac", "value": network.mac}], "descr": [{"value": network.interface}]}],
        "ttl": [{"ttl": "120"}],
    }
