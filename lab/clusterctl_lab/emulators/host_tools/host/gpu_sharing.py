"""gpu-sharing: the kernel's release, the driver's kernel modules and the IOMMU's groups of this machine.

Stands in for a burn-in program that would read the controller's own /proc and /sys. The driver's line is that of
/proc/driver/nvidia/version in NVIDIA's bug reports, with open modules and without. A group is a device's bus, as in the
`lspci` of this folder; its type is one of Linux's ABI (sysfs-kernel-iommu_groups).
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import driver_version, load
from clusterctl_lab.emulators.host_tools.host.lspci import iommu_group


def main(argv: Sequence[str]) -> int:
    if argv:
        sys.stderr.write("the lab's gpu-sharing takes no arguments\n")
        return 2
    facts = load()
    lines = [f"kernel {platform.release()}"]
    if facts.gpus and driver_version():
        kind = "Open Kernel Module for x86_64" if facts.peermem else "x86_64 Kernel Module"
        version = driver_version()
        lines.append(f"NVRM version: NVIDIA UNIX {kind}  {version}  Release Build")
    devices = (*(hca.pci for hca in facts.hcas), *(gpu.address for gpu in facts.gpus))
    groups = sorted({iommu_group(address) for address in devices})
    lines += [f"/sys/kernel/iommu_groups/{group}/type {facts.iommu}" for group in groups]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0
