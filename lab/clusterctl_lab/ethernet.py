"""The lab's management network: one switch in each rack, and which of its ports is whose when a rack is delivered."""

from __future__ import annotations

import zlib

from clusterctl_lab.machine import Machine, SwitchPort

INTERFACE = "eth0"
"""What a host calls its first NIC."""
HOSTS_PER_RACK = 4
FIRST_BMC_PORT = 25
"""Hosts are on the ports from 1 on, their BMCs, in the same order, from here on."""
_PREFIX = "mgmt-a"


def rack_of(index: int) -> str:
    """The rack of the machine with that number (from 1)."""
    return f"A{(index - 1) // HOSTS_PER_RACK + 1:02d}"


def host_port(index: int) -> SwitchPort:
    """Where the first NIC of that machine is cabled to."""
    return SwitchPort(_switch(index), (index - 1) % HOSTS_PER_RACK + 1)


def bmc_port(index: int) -> SwitchPort:
    return SwitchPort(_switch(index), (index - 1) % HOSTS_PER_RACK + FIRST_BMC_PORT)


def port_name(port: SwitchPort) -> str:
    """Return the name that a switch with Linux has for the port and sends by LLDP."""
    return f"swp{port.port}"


def chassis_mac(switch: str) -> str:
    """Return the MAC address: of `mgmt-a07` 02:1a:5c:00:00:07, of a RoCE switch one by its name."""
    if not switch.startswith(_PREFIX):
        return "02:1a:5d:" + ":".join(f"{byte:02x}" for byte in zlib.crc32(switch.encode()).to_bytes(4, "big")[1:])
    rack = int(switch.removeprefix(_PREFIX))
    return f"02:1a:5c:00:{rack >> 8:02x}:{rack & 255:02x}"


def neighbour(machine: Machine) -> SwitchPort | None:
    """Return the neighbour that its first NIC receives; None where nothing is plugged in or the cable is dead."""
    return None if machine.system.network_lost else machine.network


def _switch(index: int) -> str:
    return f"{_PREFIX}{rack_of(index)[1:]}"
