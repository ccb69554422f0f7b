"""What a machine must have to carry virtual metal."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.metal.command_line import FIRMWARE, QEMU, VARIABLES

METAL_TOOLS = {
    "debugfs": "e2fsprogs",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "zstd": "zstd",
    QEMU: "qemu-system-x86",
    "dnsmasq": "dnsmasq-base",
}
"""Program → the Debian package that has it; the last one is the installer's."""
METAL_FILES = {
    FIRMWARE: "ovmf",
    VARIABLES: "ovmf",
    Path("/usr/lib/ipxe/ipxe.efi"): "ipxe",
}
TUN = Path("/dev/net/tun")


def check_metal() -> None:
    """Raise `EnvironmentBrokenError` naming the packages that are missing, or the kernel's part."""
    places = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    missing = {package for tool, package in METAL_TOOLS.items() if shutil.which(tool, path=places) is None}
    missing |= {package for file, package in METAL_FILES.items() if not file.exists()}
    if missing:
        raise EnvironmentBrokenError(
            f"virtual metal needs programs that this machine lacks, of: {', '.join(sorted(missing))}",
            remedy=f"apt-get install --no-install-recommends {' '.join(sorted(missing))}",
        )
    if not TUN.exists():
        raise EnvironmentBrokenError(
            "this kernel makes no network interfaces for virtual machines",
            where=str(TUN),
            remedy="modprobe tun; inside a container, pass the device in",
        )
