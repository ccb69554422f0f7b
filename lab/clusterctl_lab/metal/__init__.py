"""The lab's machines as QEMU virtual machines: firmware, network boot, disks and an OS of their own."""

from clusterctl_lab.metal.command_line import MEMORY_MIB
from clusterctl_lab.metal.faults import METAL_FAULTS, inject_metal
from clusterctl_lab.metal.preflight import METAL_TOOLS, check_metal
from clusterctl_lab.metal.qemu_metal import MetalSettings, QemuMetal
from clusterctl_lab.metal.site import BOOT_FOLDER, as_metal

__all__ = [
    "BOOT_FOLDER",
    "MEMORY_MIB",
    "METAL_FAULTS",
    "METAL_TOOLS",
    "MetalSettings",
    "QemuMetal",
    "as_metal",
    "check_metal",
    "inject_metal",
]
