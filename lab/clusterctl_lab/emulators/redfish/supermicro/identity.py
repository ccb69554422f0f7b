"""How Supermicro derives a machine's identities."""

from __future__ import annotations

from clusterctl_lab.machine import Hca, Machine


def uuid(machine: Machine) -> str:
    """Zeros and the BMC's MAC, as recorded (…-7CC25550A8FF)."""
    return f"00000000-0000-0000-0000-{machine.bmc.mac.replace(':', '').upper()}"


def chassis_serial(machine: Machine) -> str:
    """The chassis has a serial of its own (recorded: C8010MM21A30331)."""
    return f"C8010MM{machine.index:08d}"


def board_serial(machine: Machine) -> str:
    return f"OM234S{machine.index:06d}"


def baseboard_serial(machine: Machine) -> str:
    """The HGX baseboard's (recorded: 1662523650462)."""
    return f"166252{machine.index:07d}"


def hca_mac(hca: Hca) -> str:
    """An HCA's Ethernet address is made of the same digits as its GUID: the maker's three bytes and the last three."""
    digits = hca.guid[:6] + hca.guid[-6:]
    return ":".join(digits[i : i + 2] for i in range(0, len(digits), 2)).upper()
