"""Runs on a node, as the built-in probe `cpu-share SECONDS`: how much of a processor work of the highest priority gets.

Standard library only, Python 3.9. It does a fixed amount of work, before all others by its priority (so it needs root),
repeatedly until it gets nearly a whole processor for it, or the time is up: what other work there is does not hold
it up, a quota does.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

WORK = 0.05  # seconds of a processor
GOOD = 0.9  # of a processor: enough to stop
FIRST = -20  # before all others (setpriority(2), sched(7))
AUTOGROUP = Path("/proc/self/autogroup")


def runnable() -> int:
    """Return how many tasks want a processor now."""
    return int(Path("/proc/loadavg").read_text().split()[3].split("/")[0])


def main(seconds: float) -> None:
    end, pause = time.monotonic() + seconds, 0.1
    tries: list[dict[str, float]] = []
    os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    if AUTOGROUP.exists():
        AUTOGROUP.write_text(str(FIRST))
    while True:
        others, began, spent = runnable(), time.monotonic(), time.process_time()
        while time.process_time() - spent < WORK:
            pass
        share = (time.process_time() - spent) / (time.monotonic() - began)
        tries.append({"share": round(share, 4), "runnable": max(others, runnable())})
        if share >= GOOD or time.monotonic() + pause > end:
            break
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 — spreads tries, no secret
        pause = min(2 * pause, 4.0)
    json.dump({"cpus": len(os.sched_getaffinity(0)), "tries": tries}, sys.stdout)


if __name__ == "__main__":
    main(float(sys.argv[1]))
