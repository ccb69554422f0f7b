"""Runs on a node, as the built-in probe `edac-counters`: what the kernel's EDAC drivers counted on each memory module.

Standard library only, Python 3.9. The files are those of the kernel's ABI, Documentation/ABI/testing/sysfs-devices-edac
(docs.kernel.org/admin-guide/RAS/main.html): a controller `mc0` has modules `dimm0`, or `rank0` under drivers that count
by rank. A file that is not there, or holds no number, is printed as null, not as zero.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import Any

SYSFS = Path("/sys/devices/system/edac/mc")


def text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return None


def number(path: Path) -> int | None:
    found = text(path)
    return int(found) if found is not None and found.isdigit() else None


def module(folder: Path) -> dict[str, Any]:
    return {
        "name": folder.name,
        "label": text(folder / "dimm_label"),
        "location": text(folder / "dimm_location"),
        "corrected": number(folder / "dimm_ce_count"),
        "uncorrected": number(folder / "dimm_ue_count"),
    }


def controller(folder: Path) -> dict[str, Any]:
    found = [entry for kind in ("dimm", "rank") for entry in sorted(folder.glob(f"{kind}[0-9]*"))]
    return {
        "name": folder.name,
        "driver": text(folder / "mc_name"),
        "seconds": number(folder / "seconds_since_reset"),
        "corrected_nowhere": number(folder / "ce_noinfo_count"),
        "uncorrected_nowhere": number(folder / "ue_noinfo_count"),
        "modules": [module(entry) for entry in found],
    }


def main(root: Path = SYSFS) -> None:
    """Print `{"controllers": […]}`; none where no EDAC driver is loaded."""
    folders = sorted(root.glob("mc[0-9]*")) if root.is_dir() else []
    json.dump({"controllers": [controller(folder) for folder in folders]}, sys.stdout)


if __name__ == "__main__":
    main()
