"""A virtual machine's wires as input of `ip -batch`, run inside the lab's switch."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.hosts.addresses import RAIL_MTU
from clusterctl_lab.machine import Hca, Machine


def tap(machine: Machine) -> str:
    """The name of its interface in the switch: a host's in namespaces has the same."""
    return f"h{machine.index}m"


def rail_tap(machine: Machine, hca: Hca) -> str:
    """As `tap`, of the network card that carries an adapter's traffic."""
    return f"h{machine.index}r{hca.rail}"


def rail_mac(machine: Machine, hca: Hca) -> str:
    """Return the MAC address of that card; the BMC does not report it."""
    return f"02:1a:1b:{hca.rail:02x}:{machine.index >> 8 & 255:02x}:{machine.index & 255:02x}"


def plug(machine: Machine) -> str:
    """Its management cable and its rails; `hosts.wiring.unplug` takes them away."""
    return "".join(f"{line}\n" for line in _lines(machine))


def _lines(machine: Machine) -> Iterator[str]:
    yield from _cable(tap(machine), "mgmt", machine, up=not machine.system.network_lost)
    for hca in machine.hcas:
        name = rail_tap(machine, hca)
        yield from _cable(name, f"rail{hca.rail}", machine, up=hca.cable is not None, mtu=f"mtu {RAIL_MTU} ")


def _cable(name: str, bridge: str, machine: Machine, *, up: bool, mtu: str = "") -> Iterator[str]:
    yield f"tuntap add dev {name} mode tap"
    yield f"link set {name} {mtu}group {machine.index}"
    yield f"link set {name} master {bridge} {'up' if up else 'down'}"
