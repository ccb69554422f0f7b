"""Addresses on the rails: one network per rail, right behind the lab's own and of its size.

With the lab on 10.88.0.0/16, rail 0 is 10.89.0.0/16 … rail 7 is 10.96.0.0/16, and a host has the same offset in each.
They exist inside the hosts only: nothing outside a host can route to them, so neighbouring labs do not collide.
"""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv4Network, ip_address

from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine

RAIL_MTU = 9000


def rail_network(layout: Layout, rail: int) -> IPv4Network:
    """The network of `rail` (0-based)."""
    network = layout.network
    return IPv4Network((int(network.network_address) + (rail + 1) * network.num_addresses, network.prefixlen))


def rail_interface(layout: Layout, machine: Machine, rail: int) -> IPv4Interface:
    """Address and prefix of the machine's `ib<rail>`."""
    offset = int(ip_address(machine.address)) - int(layout.network.network_address)
    network = rail_network(layout, rail)
    return IPv4Interface((network[offset], network.prefixlen))
