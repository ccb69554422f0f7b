"""Who acts on the world's machines besides their BMCs: what answers a network boot, and what runs the installed OS."""

from __future__ import annotations

import enum
from typing import Protocol

from clusterctl.lab.machine import Machine


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
