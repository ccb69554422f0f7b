"""Detects whether GPUs and processors of this host are loaded at the same time, which overloads weak power supplies.

The stand-ins for loads report their result immediately. On a host with weak power they run for a while, so that loads
that start together overlap.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from clusterctl_lab.emulators.host_tools.host.facts import Facts

STAY_S = 5.0
PROCESSORS = "cpu-memory-load"
PROCESSES = Path(os.environ.get("CLUSTERCTL_LAB_PROCESSES", "/proc"))


def work_processors(facts: Facts) -> None:
    """As long as GPUs may look for it."""
    if facts.weak_power:
        time.sleep(STAY_S)


def brakes_gpus(facts: Facts, processes: Path = PROCESSES) -> bool:
    """Looks until processors work, too, or the time is up."""
    until = time.monotonic() + STAY_S
    while facts.weak_power and time.monotonic() < until:
        if any(_is_at_work(process) for process in processes.glob("[0-9]*/cmdline")):
            return True
        time.sleep(0.1)
    return False


def _is_at_work(process: Path) -> bool:
    try:
        words = process.read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it ended while we looked
        return False
    return any(Path(word).name == PROCESSORS for word in words[:3])  # interpreter, its options, program
