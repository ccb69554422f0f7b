"""The controller's own interface in the provisioning network."""

from __future__ import annotations

import ipaddress
import json

from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.ports import Deadline

SECONDS = 30


def network_of(interface: str, address: str) -> ipaddress.IPv4Network:
    """The network that the address lies in there (iproute2). Raises `EnvironmentBrokenError` where it is not there."""
    argv = ("ip", "-json", "-4", "address", "show", "dev", interface)
    ran = run(argv, Deadline.after(SECONDS), Surroundings(missing="install iproute2"))
    if ran.exit_status != 0:
        raise _missing(interface, ran.stderr.strip() or "there is no such interface")
    return found_in(ran.stdout, interface, address)


def found_in(text: str, interface: str, address: str) -> ipaddress.IPv4Network:
    """As `ip -json address show` tells it."""
    told = [item for link in json.loads(text or "[]") for item in link.get("addr_info", [])]
    for item in told:
        if item.get("local") == address:
            return ipaddress.IPv4Interface(f"{address}/{item['prefixlen']}").network
    has = ", ".join(f"{item['local']}/{item['prefixlen']}" for item in told) or "no address"
    raise _missing(interface, f"it has {has}, not {address}")


def _missing(interface: str, why: str) -> EnvironmentBrokenError:
    return EnvironmentBrokenError(
        why,
        where=f"interface {interface}",
        remedy="give it provisioning.address, or correct provisioning.interface and .address in site.yml",
    )
