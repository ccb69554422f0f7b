"""lldpctl: `-f json0`, the neighbours of this host's lldpd.

The document is that of lldpd 1.0.16, recorded between two namespaces; one of them acted as a switch that names its
ports by interface.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from clusterctl_lab.emulators.host_tools.host.facts import EthernetSwitch, Facts, load

_TTL = "120"
_CAPABILITIES = ("Bridge", "Router", "Wlan", "Station")


def main(argv: Sequence[str]) -> int:
    if list(argv) != ["-f", "json0"]:
        sys.stderr.write("the lab's lldpctl knows -f json0 alone\n")
        return 1
    sys.stdout.write(document(neighbours(load())))
    return 0


def document(interfaces: list[dict[str, Any]]) -> str:
    """Return the document; an lldpd without neighbours leaves the element out."""
    return json.dumps({"lldp": [{"interface": interfaces} if interfaces else {}]}, indent=2) + "\n"


def neighbours(facts: Facts) -> list[dict[str, Any]]:
    """Return the neighbours of the first NIC and of the adapters in Ethernet mode."""
    ports = [(facts.network.interface, facts.network.switch)]
    ports += [(hca.interface, hca.switch) for hca in facts.hcas if hca.ethernet]
    return [_neighbour(interface, switch) for interface, switch in ports if switch is not None]


def _neighbour(interface: str, switch: EthernetSwitch) -> dict[str, Any]:
    received = {"name": interface, "via": "LLDP", "rid": "1", "age": "0 day, 00:00:02"}
    return {**received, "chassis": [_chassis_of(switch)], "port": [_port_of(switch)]}


def chassis(mac: str, name: str, description: str, capability: str) -> dict[str, Any]:
    """`capability` is the one that is enabled."""
    return {
        "id": [{"type": "mac", "value": mac}],
        "name": [{"value": name}],
        "descr": [{"value": description}],
        "capability": [{"type": kind, "enabled": kind == capability} for kind in _CAPABILITIES],
    }


def _chassis_of(switch: EthernetSwitch) -> dict[str, Any]:
    return chassis(switch.mac, switch.name, "Ethernet switch of a rehearsal lab", "Bridge")


def _port_of(switch: EthernetSwitch) -> dict[str, Any]:
    return {
        "id": [{"type": "ifname", "value": switch.port}],
        "descr": [{"value": switch.port}],
        "ttl": [{"value": _TTL}],
    }
