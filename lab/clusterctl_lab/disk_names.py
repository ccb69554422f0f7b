"""What the kernel calls a machine's drives: the same in the installer's eyes and on the host."""

from __future__ import annotations

from clusterctl_lab.machine import Machine


def kernel_names(machine: Machine) -> list[str]:
    """Return the kernel's names of the drives in slot order: AHCI drives `sda`…, the others `nvme0n1`…"""
    names: list[str] = []
    sata = nvme = 0
    for drive in machine.drives:
        if "AHCI" in drive.slot:
            names.append(f"sd{chr(ord('a') + sata)}")
            sata += 1
        else:
            names.append(f"nvme{nvme}n1")
            nvme += 1
    return names
