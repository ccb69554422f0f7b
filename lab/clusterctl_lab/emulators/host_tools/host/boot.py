"""Since when this host runs."""

from __future__ import annotations

import os

from clusterctl_lab.emulators.host_tools.host.small_files import text_of


def uptime() -> float:
    """Seconds since its init was started (proc(5), /proc/pid/stat field 22): the machine may run for longer."""
    started = int(text_of("/proc/1/stat").rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return float(text_of("/proc/uptime").split()[0]) - started
