"""Runs on a node, as the built-in probe `bluefields`: mode, firmware and PCIe link of each BlueField card.

Standard library only, Python 3.9. A card is a PCI function 0 with a device number of a BlueField network controller
(pci.ids). Its mode is among the settings that mlxconfig of NVIDIA, or mstconfig of Debian's mstflint, reads; all rows
are asked for, because a setting that a card does not know ends the command.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Callable, Optional

from clusterctl_burnin.node.processes import NOT_FOUND, Result
from clusterctl_burnin.node.processes import ask as ask_tool

DEVICES = Path("/sys/bus/pci/devices")
VENDOR = "0x15b3"
MODELS = {"0xa2d2": "BlueField", "0xa2d6": "BlueField-2", "0xa2dc": "BlueField-3", "0xa2df": "BlueField-4"}
SECONDS = 20.0
MAX_CARDS = 16
MAX_LINE = 200
ROWS = ("Configurations:", "INTERNAL_CPU_MODEL", "INTERNAL_CPU_OFFLOAD_ENGINE")
Ask = Callable[..., Result]


def text(path: Path) -> Optional[str]:
    """Return what the file holds; None where there is none."""
    try:
        return path.read_text().strip() or None
    except (OSError, ValueError):
        return None


def firmware(folder: Path) -> Optional[str]:
    """Return the version by the RDMA driver; None where it is not loaded for this card."""
    return next((found for each in sorted(folder.glob("infiniband/*")) if (found := text(each / "fw_ver"))), None)


def settings(address: str, ask: Ask) -> tuple[list[str], str]:
    """Return the rows of the settings that give the mode, and the error where they could not be read."""
    code, output, error = ask("mlxconfig", "-d", address, "-e", "query", seconds=SECONDS)
    if code == NOT_FOUND:
        code, output, error = ask("mstconfig", "-d", address, "-e", "query", seconds=SECONDS)
    if code != 0:
        return [], (error or output or f"exit code {code}").strip()[:MAX_LINE]
    return [line[:MAX_LINE] for line in output.splitlines() if any(name in line.split() for name in ROWS)], ""


def card(folder: Path, ask: Ask) -> dict[str, Any]:
    rows, error = settings(folder.name, ask)
    return {
        "address": folder.name,
        "model": MODELS[text(folder / "device") or ""],
        "firmware": firmware(folder),
        "speed": text(folder / "current_link_speed"),
        "width": text(folder / "current_link_width"),
        "max_speed": text(folder / "max_link_speed"),
        "max_width": text(folder / "max_link_width"),
        "settings": rows,
        "error": error,
    }


def is_card(folder: Path) -> bool:
    return folder.name.endswith(".0") and text(folder / "vendor") == VENDOR and text(folder / "device") in MODELS


def main(devices: Path = DEVICES, ask: Ask = ask_tool) -> int:
    """Print `{"cards": […]}`; fails where the kernel lists no PCI device at all."""
    if not devices.is_dir():
        sys.stderr.write(f"{devices} is missing\n")
        return 1
    found = [folder for folder in sorted(devices.iterdir()) if is_card(folder)]
    json.dump({"cards": [card(folder, ask) for folder in found[:MAX_CARDS]]}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
