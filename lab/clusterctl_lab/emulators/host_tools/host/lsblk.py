"""lsblk: `--json --bytes --output COLUMNS` of the machine's drives, as lsblk of util-linux 2.38 prints it.

The real tool answers any other call: it sees the controller's drives.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clusterctl_lab.emulators.host_tools.host.drives import Device, devices

REAL = "/usr/bin/lsblk"
_COLUMNS: Mapping[str, Callable[[Device], Any]] = {
    "NAME": lambda device: device.name,
    "KNAME": lambda device: device.name,
    "PATH": lambda device: device.path,
    "MAJ:MIN": lambda device: device.number,
    "TYPE": lambda device: device.kind,
    "TRAN": lambda device: ("nvme" if device.name.startswith("nvme") else "sata") if device.kind == "disk" else None,
    "SIZE": lambda device: device.size,
    "MODEL": lambda device: device.disk.model if device.kind == "disk" else None,
    "SERIAL": lambda device: device.disk.serial if device.kind == "disk" else None,
    "WWN": lambda _: None,
    "FSTYPE": lambda device: {"/": "ext4", "/boot/efi": "vfat"}.get(device.mountpoint or ""),
    "PTTYPE": lambda device: "gpt" if device.parts or device.kind == "part" else None,
    "MOUNTPOINT": lambda device: device.mountpoint,
}
"""A whole disk reports model and serial, its partitions do not; the lab's drives have no world-wide names."""


def main(argv: Sequence[str]) -> int:
    columns = argv[-1].split(",") if list(argv[:-1]) == ["--json", "--bytes", "--output"] else []
    if not columns or not _COLUMNS.keys() >= set(columns):
        os.execv(REAL, [REAL, *argv])  # noqa: S606 — another program's name and arguments, no shell
    json.dump({"blockdevices": [_row(device, columns) for device in devices()]}, sys.stdout, indent=3)
    sys.stdout.write("\n")
    return 0


def _row(device: Device, columns: Sequence[str]) -> dict[str, Any]:
    row = {column.lower(): _COLUMNS[column](device) for column in columns}
    return {**row, "children": [_row(part, columns) for part in device.parts]} if device.parts else row
