"""A virtual machine's wire as input of `ip -batch`, run inside the lab's switch."""

from __future__ import annotations

from clusterctl.lab.machine import Machine


def tap(machine: Machine) -> str:
    """The name of its interface in the switch: a host's in namespaces has the same."""
    return f"h{machine.index}m"


def plug(machine: Machine) -> str:
    """Its management cable; `hosts.wiring.unplug` takes it away."""
    name, link = tap(machine), "down" if machine.system.network_lost else "up"
    return (
        f"tuntap add dev {name} mode tap\nlink set {name} group {machine.index}\nlink set {name} master mgmt {link}\n"
    )
