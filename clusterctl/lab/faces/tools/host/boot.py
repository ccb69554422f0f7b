"""Since when this host runs."""

from __future__ import annotations

import os
from pathlib import Path


def uptime() -> float:
    """Seconds since its init was started (proc(5), /proc/pid/stat field 22): the machine may run for longer."""
    started = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return float(Path("/proc/uptime").read_text().split()[0]) - started
