"""The drives of virtual machines: sparse files of the model's size, which hold what was written and no more.

Raw and never synced to the machine's own disk: what a guest has written out of its memory outlives the end of its QEMU
process, as on a drive that guards its cache against loss of power. What it still kept in memory is lost.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from clusterctl_lab.boot import HttpBoot
from clusterctl_lab.machine import Drive, Machine
from clusterctl_lab.metal.efi_variables import boot_next_from, signature_lists

BLOCK = 512
GPT = b"EFI PART"
"""Begins the second block of a drive with a partition table (UEFI 2.10, 5.3.2)."""


@dataclass(frozen=True, slots=True)
class MetalDrives:
    """The drives of a lab's machines, a folder each below `folder`."""

    folder: Path

    def path(self, machine: Machine, drive: Drive) -> Path:
        """Its file, by its serial."""
        return self.folder / machine.name / f"{drive.serial}.raw"

    def insert(self, machine: Machine) -> None:
        """See that each drive of the machine has its file; what is on one stays."""
        for drive in machine.drives:
            path = self.path(machine, drive)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists():
                draft = path.with_suffix(".new")
                with draft.open("wb") as file:
                    file.truncate(drive.size_bytes)
                draft.replace(path)

    def partitioned(self, machine: Machine, drive: Drive) -> bool:
        """True where a GUID partition table is on it."""
        try:
            with self.path(machine, drive).open("rb") as file:
                return os.pread(file.fileno(), len(GPT), BLOCK) == GPT
        except FileNotFoundError:
            return False

    def variables_for(self, machine: Machine, http: HttpBoot, template: Path) -> Path:
        """Return a memory of the firmware for one boot from a URI; its own is left as it is."""
        path = self.folder / machine.name / "variables-http.fd"
        path.write_bytes(boot_next_from(http.uri, template.read_bytes()))
        return path

    def authorities(self, machine: Machine, http: HttpBoot) -> Path:
        """Return the file of the authorities that the firmware trusts for it."""
        path = self.folder / machine.name / "authorities.esl"
        path.write_bytes(signature_lists(http.authorities))
        return path

    def variables(self, machine: Machine, template: Path) -> Path:
        """The firmware's own memory, empty at first."""
        path = self.folder / machine.name / "variables.fd"
        if not path.exists():
            draft = path.with_suffix(".new")
            shutil.copyfile(template, draft)
            draft.replace(path)
        return path
