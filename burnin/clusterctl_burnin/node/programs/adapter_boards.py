"""Runs on a node, as the built-in probe `adapter-boards`: the PSID of each adapter, by the kernel's name for it.

Standard library only, Python 3.9. The mlx5 driver reports it in /sys/class/infiniband/DEVICE/board_id (Linux,
Documentation/ABI/stable/sysfs-class-infiniband), so that no firmware tool need touch the adapter.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

DEVICES = Path("/sys/class/infiniband")


def text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except (OSError, ValueError):
        return None


def main(devices: Path = DEVICES) -> None:
    """Print `{"adapters": [{name, psid}]}`; `psid` is null where the driver does not report it."""
    folders = sorted(devices.iterdir()) if devices.is_dir() else []
    adapters = [{"name": folder.name, "psid": text(folder / "board_id")} for folder in folders]
    json.dump({"adapters": adapters}, sys.stdout)


if __name__ == "__main__":
    main()
