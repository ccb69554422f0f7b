"""ipmitool: `sdr type Fan`, the fans of this host as its BMC reports them.

The form is that of ipmitool 1.8.19; a fan that does not turn is `cr`, as printed of a PowerEdge R320
(ateodorescu/home-assistant-ipmi#52). Even-numbered fans are the slower rear rotors.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import load

FRONT_RPM, REAR_RPM = 9600, 8400
FIRST_SENSOR = 0x30


def main(argv: Sequence[str]) -> int:
    if list(argv) != ["sdr", "type", "Fan"]:
        sys.stderr.write("the lab's ipmitool knows sdr type Fan\n")
        return 1
    fans = load().fans
    for number, fan in enumerate(fans):
        rpm = 0 if fan.failed else (REAR_RPM if number % 2 else FRONT_RPM) * fan.speed_percent // 100
        name = fan.slot.removeprefix("System Board ")
        _line(name, FIRST_SENSOR + number, "cr" if fan.failed else "ok", f"{rpm} RPM")
    redundancy = "Redundancy Lost" if any(fan.failed for fan in fans) else "Fully Redundant"
    _line("Fan Redundancy", FIRST_SENSOR + len(fans), "ok", redundancy)
    return 0


def _line(name: str, sensor: int, state: str, reading: str) -> None:
    """Names have 16 characters at most (IPMI 2.0, 43.1)."""
    sys.stdout.write(f"{name[:16]:<16} | {sensor:02X}h | {state:<3} |  7.1 | {reading}\n")
