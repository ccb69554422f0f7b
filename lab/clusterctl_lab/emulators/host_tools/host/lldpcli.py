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
    facts = load()
    ports = [(facts.network.interface, facts.network.mac)]
    ports += [(hca.interface, hca.mac) for hca in facts.hcas if hca.ethernet]
    sys.stdout.write(document([_interface(facts, *port) for port in ports]))
    return 0


def _interface(facts: Facts, name: str, mac: str) -> dict[str, Any]:
    return {
        "name": name,
        "status": [{"value": "RX and TX"}],
        "chassis": [chassis(facts.network.mac, facts.name, f"{facts.manufacturer} {facts.model}", "Station")],
        "port": [{"id": [{"type": "mac", "value": mac}], "descr": [{"value": name}]}],
        "ttl": [{"ttl": "120"}],
    }
