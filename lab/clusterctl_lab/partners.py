"""Who acts on the world's machines besides their BMCs: what answers a network boot, and what runs the installed OS;
or, where machines have a firmware of their own, what gives them power.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol

from clusterctl_lab.boot import BootTarget
from clusterctl_lab.machine import Machine


class NetbootAnswer(enum.Enum):
    """What the provisioning server tells a machine that asks over the network."""

    LOCAL_DISK = "local"
    EPHEMERAL = "ephemeral"
    NOTHING = "nothing"


class Provisioner(Protocol):
    """What answers a network boot: the lab's MAAS."""

    async def netboot(self, machine: Machine) -> NetbootAnswer:
        """Called when the machine's firmware asks. EPHEMERAL: the provisioner goes on by itself in the background and
        powers the machine off or reboots it through its BMC when done.
        """
        ...


class HostFace(Protocol):
    """Runs the installed OS of a machine."""

    def installed(self, machine: Machine) -> bool: ...

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        """Write the OS and apply its cloud-init user-data; the machine is not running afterwards."""
        ...

    async def erase(self, machine: Machine) -> None:
        """Nothing is on any of its drives any more; the machine's OS is not running."""
        ...

    async def boot(self, machine: Machine) -> None:
        """Start the OS; returns when init runs."""
        ...

    async def halt(self, machine: Machine) -> None:
        """Power is gone: everything of it dies at once."""
        ...


class Metal(Protocol):
    """Machines with a firmware of their own: it decides what they boot, and nobody else answers for them."""

    def installed(self, machine: Machine) -> bool:
        """True where a partition table is on its root disk."""
        ...

    async def power_on(self, machine: Machine, devices: Sequence[str]) -> None:
        """Power is there: the firmware starts, and tries `devices` (MACs, serials of drives) in that order."""
        ...

    async def power_off(self, machine: Machine) -> None:
        """Power is gone, whatever ran; one that has no power is left alone."""
        ...

    async def press_power_button(self, machine: Machine) -> None:
        """Asks the OS to shut down (ACPI). What does not listen goes on."""
        ...


class MetalListener(Protocol):
    """Who hears what the machines of a `Metal` do by themselves."""

    def left_post(self, name: str) -> None:
        """Its firmware is through with itself and looks for something to boot."""
        ...

    def started(self, name: str, target: BootTarget) -> None:
        """Its firmware starts what it found there: a network's loader (PXE), or a drive's (HDD)."""
        ...

    async def rebooted(self, name: str) -> None:
        """It reset itself; the machine stands still until it gets power again."""
        ...

    async def switched_off(self, name: str) -> None:
        """It switched itself off."""
        ...
