"""Runs on a node, as the built-in probe `gpu-sharing`: what decides whether adapters get at GPU memory by themselves.

Standard library only, Python 3.9. Prints `kernel RELEASE`, then /proc/driver/nvidia/version as it is, where there is a
driver, and a line `FILE TYPE` for each IOMMU group (Linux, Documentation/ABI/testing/sysfs-kernel-iommu_groups).
"""

from __future__ import annotations

import platform
import sys
from pathlib import Path

DRIVER = "proc/driver/nvidia/version"
GROUPS = "sys/kernel/iommu_groups"


def text(path: Path) -> str:
    """Return the content; empty where it cannot be read: the check then knows too little to pass."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def main(root: Path = Path("/")) -> None:
    lines = [f"kernel {platform.release()}", *text(root / DRIVER).splitlines()]
    groups = sorted((root / GROUPS).glob("*/type"))
    lines += [f"/{path.relative_to(root)} {text(path).strip()}" for path in groups]
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
