"""Identities of a DGX. The serial on its lid is the system's; board and chassis have serials of their own."""

from __future__ import annotations

from uuid import NAMESPACE_DNS, uuid5

from clusterctl_lab.machine import Machine


def uuid(machine: Machine) -> str:
    """Made of the BMC's MAC in its last group, as recorded (…-02bc-5CFF35FBE6E9)."""
    return f"B11DD4F2-BFDE-1000-02BC-{machine.bmc.mac.replace(':', '').upper()}"


def chassis_serial(machine: Machine) -> str:
    return f"166312{machine.index:07d}"


def hgx_uuid(machine: Machine) -> str:
    return str(uuid5(NAMESPACE_DNS, f"hgx.{machine.serial}"))
