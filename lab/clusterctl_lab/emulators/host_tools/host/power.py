"""Detects whether other parts of this host are loaded at the same time as its processors, which some faults need.

The stand-ins for loads report their result immediately. On a host with such a fault they run for a while, so that loads
that start together overlap.
"""

from __future__ import annotations

import os
import time

from clusterctl_lab.emulators.host_tools.host.facts import Facts, Hca
from clusterctl_lab.emulators.host_tools.host.small_files import text_of

STAY_S = 5.0
PROCESSORS = "cpu-memory-load"
PROCESSES = os.environ.get("CLUSTERCTL_LAB_PROCESSES", "/proc")


def work_processors(facts: Facts) -> None:
    """Stay as long as GPUs and adapters may look for it."""
    if facts.weak_power or any(hca.load_slow for hca in facts.hcas):
        time.sleep(STAY_S)


def brakes_gpus(facts: Facts, processes: str = PROCESSES) -> bool:
    """Return whether GPUs and processors work at the same time, on weak power."""
    return facts.weak_power and _processors_work(processes)


def slows_adapter(hca: Hca, processes: str = PROCESSES) -> bool:
    """Return whether adapter and processors work at the same time, and the adapter is slow then."""
    return hca.load_slow and _processors_work(processes)


def _processors_work(processes: str) -> bool:
    """Look until processors work, too, or the time is up."""
    until = time.monotonic() + STAY_S
    while time.monotonic() < until:
        if any(_is_at_work(f"{processes}/{process}/cmdline") for process in _running(processes)):
            return True
        time.sleep(0.1)
    return False


def _running(processes: str) -> list[str]:
    try:
        return [name for name in os.listdir(processes) if name.isdigit()]  # noqa: PTH208 — see small_files
    except FileNotFoundError:
        return []


def _is_at_work(command_line: str) -> bool:
    try:
        words = text_of(command_line).split("\0")
    except (OSError, ValueError):  # it ended while we looked; the words of another program
        return False
    return any(word.rpartition("/")[2] == PROCESSORS for word in words[:3])  # interpreter, its options, program
