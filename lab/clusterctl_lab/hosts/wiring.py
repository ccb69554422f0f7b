"""The lab's wires as input of `ip -batch`: pure text, so that one process makes all of a host's interfaces.

All bridges live in a network namespace of their own, the lab's switch: `mgmt`, `rail0` … one per rail, and in a lab
that is split `pod1` … one per pod, which then have the hosts' management wires and those of the BMCs. The machine
itself sees one interface per lab and its firewall none of the hosts' traffic. A host's wire is a veth pair: `eth0` or
`ib<rail>` in the host, `h<index>m` or `h<index>r<rail>` in the switch, all of a host's in one interface group.
"""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl_lab.hosts.addresses import RAIL_MTU, rail_interface
from clusterctl_lab.layout import Layout, Pod
from clusterctl_lab.machine import Machine

SITE_PREFIX = 24
"""Of the network with the site's services, as a pod's controller sees it: nothing else of the lab's /16."""
CALLER = "/proc/self/fd/9"
"""The network namespace that the far end goes to: the scripts open it before they enter the switch."""


def switch(rails: int, uplink: str, pods: int = 0) -> str:
    """Run inside the switch: its bridges, and the uplink, whose far end goes to the machine."""
    return _lines(
        "link set lo up",
        "link add mgmt up type bridge mcast_snooping 0",
        *(f"link add rail{rail} mtu {RAIL_MTU} up type bridge mcast_snooping 0" for rail in range(rails)),
        *(f"link add pod{number} up type bridge mcast_snooping 0" for number in range(1, pods + 1)),
        f"link add uplink master mgmt up type veth peer name {uplink} netns {CALLER}",
    )


def pod(pod: Pod, controller: str, equipment: str) -> str:
    """Run inside the switch: the wires of a pod's two namespaces, which have these names."""
    number = pod.number
    return _lines(
        f"link add pod{number}c master pod{number} up type veth peer name eth0 netns {controller}",
        f"link add pod{number}b master pod{number} up type veth peer name eth0 netns {equipment}",
        f"link add pod{number}s master mgmt up type veth peer name eth1 netns {controller}",
    )


def controller(pod: Pod, alias: str) -> str:
    """Run inside the namespace of a pod's controller: in the pod's networks, and in that of the site's services."""
    return _lines(
        *_end(alias, pod.controllers, pod),
        f"address add {pod.site}/{SITE_PREFIX} brd + dev eth1",
        "link set eth1 up",
    )


def equipment(pod: Pod, layout: Layout, alias: str) -> str:
    """Run inside the namespace of a pod's equipment: the gateways, and the package repository, which each pod has."""
    return _lines(*_end(alias, pod.gateways, pod), f"address add {layout.apt}/32 dev eth0")


def _end(alias: str, addresses: tuple[str, str], pod: Pod) -> Iterable[str]:
    yield f"link set lo alias {alias}"
    yield "link set lo up"
    for address, network in zip(addresses, pod.networks, strict=True):
        yield f"address add {address}/{network.prefixlen} brd + dev eth0"
    yield "link set eth0 up"


def uplink(name: str, alias: str, layout: Layout) -> str:
    """Run on the machine: the gateway's address."""
    prefix = layout.network.prefixlen
    return _lines(
        f"link set {name} alias {alias}",
        f"address add {layout.gateway}/{prefix} brd + dev {name}",
        f"link set {name} up",
    )


def router(name: str, layout: Layout) -> str:
    """Run on the machine: an IPv6 address of the lab's own, from which dnsmasq can send router advertisements."""
    first, second = layout.network.network_address.packed[:2]
    return _lines(f"address replace fd00:c1:{first:x}{second:02x}::1/64 dev {name} nodad")


def services(name: str, addresses: Iterable[str]) -> str:
    """Run on the machine: further addresses of the lab (BMCs, MAAS, apt) on the uplink."""
    return _lines(*(f"address replace {address}/32 dev {name}" for address in addresses))


def no_services(name: str, addresses: Iterable[str]) -> str:
    """Run on the machine: addresses of the lab that no host has any more."""
    return _lines(*(f"address flush to {address}/32 dev {name}" for address in addresses))


def host_in_switch(machine: Machine, layout: Layout) -> str:
    """Run inside the switch, called from the host's namespace: the host's wires, plugged in where a cable is."""
    pod = layout.pod(machine.index)
    bridge = "mgmt" if pod is None else f"pod{pod.number}"
    return _lines(
        f"link add h{machine.index}m master {bridge} group {machine.index} {_up(not machine.system.network_lost)} "
        f"type veth peer name eth0 address {machine.boot_mac} netns {CALLER}",
        *(
            f"link add h{machine.index}r{hca.rail} mtu {RAIL_MTU} master rail{hca.rail} group {machine.index} "
            f"{_up(hca.cable is not None)} type veth peer name ib{hca.rail} mtu {RAIL_MTU} netns {CALLER}"
            for hca in machine.hcas
        ),
    )


def host(machine: Machine, layout: Layout) -> str:
    """Run inside the host's namespace: addresses, and the default route to the gateway."""
    pod = layout.pod(machine.index)
    prefix = (layout.network if pod is None else pod.hosts).prefixlen
    gateway = layout.gateway if pod is None else pod.gateways[-1]
    return _lines(
        "link set lo up",
        f"address add {machine.address}/{prefix} brd + dev eth0",
        "link set eth0 up",
        f"route add default via {gateway}",
        *(
            line
            for hca in machine.hcas
            for line in (
                f"address add {rail_interface(layout, machine, hca.rail)} brd + dev ib{hca.rail}",
                f"link set ib{hca.rail} up",
            )
        ),
    )


def cables(booted: Machine, now: Machine) -> str:
    """Run inside the switch: plug and unplug the rails that the host booted with, as its cables are now."""
    plugged = {hca.rail for hca in now.hcas if hca.cable}
    return _lines(
        *(f"link set h{now.index}r{hca.rail} {_up(hca.rail in plugged)}" for hca in booted.hcas),
    )


def management(machine: Machine, *, up: bool) -> str:
    """Run inside the switch: the host's management cable gets a link, or loses it."""
    return _lines(f"link set h{machine.index}m {_up(up)}")


def unplug(machine: Machine) -> str:
    """Run inside the switch: every wire of the host, gone at once."""
    return _lines(f"link delete group {machine.index}")


def _up(up: bool) -> str:
    return "up" if up else "down"


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
