"""What is on a machine's disks: the OS that the installer wrote, and the one that an earlier owner left behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl_lab.hosts import first_boot
from clusterctl_lab.hosts.cloud_config import CloudConfig
from clusterctl_lab.hosts.disk import Disk, Writer
from clusterctl_lab.machine import Drive, Machine

FOREIGN_NAME = "db-17"
"""What the earlier owner called the machine."""


@dataclass(frozen=True, slots=True)
class Disks:
    """The disks of a lab's hosts below `folder`, all above one `image`; `neighbours` as `HostSettings` has them."""

    folder: Path
    image: Path
    neighbours: Mapping[str, str]

    def installed(self, machine: Machine) -> bool:
        """True where an OS is on a drive that the machine (still) has."""
        serials = {drive.serial for drive in machine.drives}
        return machine.foreign_disk is not None or self._own(machine).installed_on() in serials

    def write(self, machine: Machine, disk_serial: str, config: CloudConfig) -> None:
        """The installer's OS, in place of what it wrote before."""
        self._write(self._own(machine), machine, disk_serial, config, self.neighbours)

    def booted(self, machine: Machine) -> Disk:
        """The disk that the machine's firmware chooses, ready to run from."""
        drive = machine.foreign_disk
        disk = self._own(machine) if drive is None else self._foreign(machine, drive)
        if drive is not None and not disk.installed_on():
            self._write(disk, machine, drive.serial, CloudConfig(hostname=FOREIGN_NAME), {})
        disk.renew_work()
        return disk

    def erase(self, machine: Machine) -> None:
        """Nothing is on any of its drives any more."""
        for disk in (self._own(machine), *(self._foreign(machine, drive) for drive in machine.drives)):
            disk.erase()

    def _own(self, machine: Machine) -> Disk:
        return Disk(self.folder / machine.name)

    def _foreign(self, machine: Machine, drive: Drive) -> Disk:
        return Disk(self.folder / f"{machine.name}.{drive.serial}")

    def _write(
        self, disk: Disk, machine: Machine, serial: str, config: CloudConfig, neighbours: Mapping[str, str]
    ) -> None:
        """Without users there is no login; without a host key it makes one of its own (`first_boot`)."""
        disk.format()
        first_boot.apply(config, machine, serial, neighbours, Writer(disk.upper, self.image))
        disk.record(machine.serial, serial)
