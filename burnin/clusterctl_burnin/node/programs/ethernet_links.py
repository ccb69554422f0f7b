"""Runs on a node, as the built-in probe `ethernet-links SECONDS`: its Ethernet ports and their counters, twice;
`ethernet-links once`: one reading.

Standard library only, Python 3.9. Read from /sys/class/net (Documentation/ABI/testing/sysfs-class-net and
-statistics of Linux): ports with hardware behind them, no bridges, bonds or virtual ones, and none on USB, as
the BMC's own port to the host is: it negotiates no speed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

TYPE_CHECKING = False  # the import of typing costs 2 ms at each start
if TYPE_CHECKING:
    from typing import Any, Optional

NET = Path("/sys/class/net")
ETHERNET = "1"  # ARPHRD_ETHER, linux/if_arp.h
COUNTERS = ("rx_packets", "rx_crc_errors", "rx_missed_errors", "rx_fifo_errors", "tx_errors")


def text(path: Path) -> Optional[str]:
    """Return what the file holds; None where the kernel refuses to read it, as for the speed of a port that is down."""
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return None


def number(path: Path) -> Optional[int]:
    """Return the number in the file; None where there is none, or where it is negative (an unknown speed)."""
    value = text(path)
    return int(value) if value is not None and value.isdigit() else None


def port(folder: Path) -> dict[str, Any]:
    """Return one port. `member`: whether its bond uses it; null where it is in none."""
    bond = (folder / "master").resolve().name if (folder / "master" / "bonding").exists() else ""
    return {
        "name": folder.name,
        "up": text(folder / "operstate") == "up",
        "speed": number(folder / "speed"),
        "duplex": text(folder / "duplex"),
        "bond": bond,
        "member": text(folder / "bonding_slave" / "mii_status") == "up" if bond else None,
        "downs": number(folder / "carrier_down_count"),
        "counters": {name: number(folder / "statistics" / name) for name in COUNTERS},
    }


def judged(device: Path) -> bool:
    """Return whether the port has hardware, and not on USB."""
    return device.exists() and (device / "subsystem").resolve().name != "usb"


def reading(net: Path) -> dict[str, Any]:
    """Return all ports now; `at` in seconds of a monotonic clock."""
    folders = [one for one in sorted(net.iterdir()) if judged(one / "device") and text(one / "type") == ETHERNET]
    return {"at": time.monotonic(), "ports": [port(folder) for folder in folders]}


def main(argv: list[str], net: Path = NET) -> int:
    """Print `{"readings": [...]}`."""
    readings = [reading(net)]
    if argv[0] != "once":
        time.sleep(float(argv[0]))
        readings.append(reading(net))
    json.dump({"readings": readings}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
