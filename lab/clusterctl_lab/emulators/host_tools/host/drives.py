"""The drives of this host as block devices: the one that it booted is parted as an installer parts it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from clusterctl_lab.emulators.host_tools.host.facts import Disk, load
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

ROOT_DISK = os.environ.get("CLUSTERCTL_LAB_ROOT_DISK", "/etc/clusterctl-lab/root-disk")
"""The serial of the drive that the running OS was written to."""
ESP_BYTES = 512 << 20
NVME_MAJOR, SD_MAJOR = 259, 8
_SD_MINORS, _NVME_MINORS = 16, 8


class Device:
    """A whole disk, or a partition of one; the root file system is on the last partition of the boot disk."""

    def __init__(
        self, name: str, number: str, kind: str, size: int, disk: Disk, parts: tuple[Device, ...] = ()
    ) -> None:
        self.name, self.number, self.kind, self.size, self.disk, self.parts = name, number, kind, size, disk, parts
        self.mountpoint: str | None = None

    @property
    def path(self) -> str:
        return f"/dev/{self.name}"


def devices() -> Iterator[Device]:
    """All disks, in the kernel's order of names."""
    booted = text_of(ROOT_DISK).strip()
    for index, disk in enumerate(load().disks):
        parts = _parts(index, disk) if disk.serial == booted else ()
        yield Device(disk.name, _number(index, disk, 0), "disk", disk.size_bytes, disk, parts)


def root() -> Device:
    """What `/` is mounted from; `LookupError` where the machine has lost that drive."""
    for device in devices():
        if device.parts:
            return device.parts[-1]
    raise LookupError("the drive that it was booted from is gone")


def _parts(index: int, disk: Disk) -> tuple[Device, ...]:
    between = "p" if disk.name[-1].isdigit() else ""
    sizes = (ESP_BYTES, disk.size_bytes - ESP_BYTES)
    parts = tuple(
        Device(f"{disk.name}{between}{at}", _number(index, disk, at), "part", size, disk)
        for at, size in enumerate(sizes, start=1)
    )
    parts[0].mountpoint, parts[1].mountpoint = "/boot/efi", "/"
    return parts


def _number(index: int, disk: Disk, part: int) -> str:
    """As `8:2`; NVMe namespaces and partitions count on from one another in the order in which they were found."""
    if disk.name.startswith("sd"):
        return f"{SD_MAJOR}:{_SD_MINORS * index + part}"
    return f"{NVME_MAJOR}:{_NVME_MINORS * index + part}"
