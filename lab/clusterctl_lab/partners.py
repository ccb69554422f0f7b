"""Protocols of what acts on the world's machines in addition to their BMCs.

A provisioner answers a network boot and a host emulator runs the installed OS; virtual machines have firmware of their
own and need only power.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol

from clusterctl_lab.boot import BootTarget, HttpBoot
from clusterctl_lab.machine import Machine


class NetbootAnswer(enum.Enum):
    """The answer of the provisioning server to a network boot."""

    LOCAL_DISK = "local"
    EPHEMERAL = "ephemeral"
    NOTHING = "nothing"


class Provisioner(Protocol):
    """Answers a network boot: the lab's MAAS."""

    async def netboot(self, machine: Machine) -> NetbootAnswer:
        """Return the answer to the machine's firmware.

        EPHEMERAL: the provisioner continues in the background and powers the machine off or reboots it through its BMC.
        """
        ...


class HostEmulator(Protocol):
    """Runs the installed OS of a machine."""

    def installed(self, machine: Machine) -> bool: ...

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        """Write the OS and apply its cloud-init user-data; the machine is not running afterwards."""
        ...

    async def erase(self, machine: Machine) -> None:
        """Erase all its drives; the machine's OS is not running."""
        ...

    async def boot(self, machine: Machine) -> None:
        """Start the OS; returns when init runs."""
        ...

    async def halt(self, machine: Machine) -> None:
        """Kill everything of the host at once: its power is off."""
        ...


class Metal(Protocol):
    """Virtual machines: their own firmware decides what they boot."""

    def installed(self, machine: Machine) -> bool:
        """Return whether a partition table is on its root disk."""
        ...

    async def power_on(self, machine: Machine, devices: Sequence[str], http: HttpBoot | None) -> None:
        """Start the firmware, which tries `http`, then `devices` (MACs, serials of drives) in that order."""
        ...

    async def power_off(self, machine: Machine) -> None:
        """Switch the machine off at once; no effect on one that is off."""
        ...

    async def press_power_button(self, machine: Machine) -> None:
        """Ask the OS to shut down (ACPI); an OS that ignores it runs on."""
        ...


class MetalListener(Protocol):
    """Is notified of what the machines of a `Metal` do by themselves."""

    def left_post(self, name: str) -> None:
        """POST is over; the firmware searches its boot devices."""
        ...

    def started(self, name: str, target: BootTarget) -> None:
        """The firmware starts a boot loader, from the network (PXE) or from a drive (HDD)."""
        ...

    async def rebooted(self, name: str) -> None:
        """The machine reset itself; it stops until it gets power again."""
        ...

    async def switched_off(self, name: str) -> None:
        """The machine switched itself off."""
        ...
