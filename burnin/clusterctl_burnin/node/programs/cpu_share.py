"""Runs on a node, as the built-in probe `cpu-share SECONDS`: how much of a processor work of the highest priority gets,
and what the processors did while it waited.

Standard library only, Python 3.9. It does a fixed amount of work, before others by its priority (so it needs root),
repeatedly until it gets nearly a whole processor for it, or the time is up. Work of the same priority, or in another
cgroup, can hold it up; idle and stolen time (proc_stat(5)) and the cgroups' quotas show whether something else did.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

WORK = 0.05  # seconds of a processor
GOOD = 0.9  # of a processor: enough to stop
FIRST = -20  # before all others (setpriority(2), sched(7))
PROC = Path("/proc")
IDLE, IOWAIT, STEAL = 3, 4, 7  # columns of /proc/stat


class Limited(NamedTuple):
    """A cgroup with a quota of the cpu controller: `cpus` processors."""

    folder: Path
    name: str
    cpus: float


def runnable(proc: Path = PROC) -> int:
    """Return how many tasks want a processor now."""
    return int((proc / "loadavg").read_text().split()[3].split("/")[0])


def unused(proc: Path = PROC) -> Optional[Tuple[float, float]]:
    """Return seconds that the processors which we may use were idle, and that a hypervisor had them; None: unknown."""
    ours = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    try:
        rows = [line.split() for line in (proc / "stat").read_text().splitlines()]
        times = [list(map(int, row[1:])) for row in rows if row and row[0] in ours]
    except (OSError, ValueError):
        return None
    if len(times) != len(ours) or any(len(row) <= STEAL for row in times):
        return None
    second = os.sysconf("SC_CLK_TCK")
    return sum(row[IDLE] + row[IOWAIT] for row in times) / second, sum(row[STEAL] for row in times) / second


def cpu_hierarchy(proc: Path = PROC) -> Optional[Tuple[Path, str]]:
    """Return where the cpu controller's hierarchy is mounted, and our own cgroup in it (cgroups(7)); None: unknown."""
    try:
        groups = [line.split(":", 2) for line in (proc / "self/cgroup").read_text().splitlines()]
        mounts = [line.split() for line in (proc / "self/mountinfo").read_text().splitlines()]
    except OSError:
        return None
    legacy = [path for _, names, path in groups if "cpu" in names.split(",")]
    own = legacy or [path for number, _, path in groups if number == "0"]
    for fields in mounts:
        kind, _, options = fields[fields.index("-") + 1 :][:3]
        fits = kind == "cgroup" and "cpu" in options.split(",") if legacy else kind == "cgroup2"
        root = fields[3].rstrip("/")
        if own and fits and ".." not in own[0].split("/") and (own[0] + "/").startswith(root + "/"):
            return Path(fields[4]), own[0][len(root) :]
    return None


def limited(proc: Path = PROC) -> Optional[List[Limited]]:
    """Return our own cgroup and those above it that have a quota; None where that cannot be read."""
    found = cpu_hierarchy(proc)
    if found is None:
        return None
    mount, path = found
    names = path.strip("/").split("/") if path.strip("/") else []
    quotas = []
    for depth in range(len(names) + 1):
        folder = mount.joinpath(*names[:depth])
        try:
            cpus = quota(folder)
        except (OSError, ValueError, ArithmeticError):
            return None
        if cpus is not None:
            quotas.append(Limited(folder, "/" + "/".join(names[:depth]), cpus))
    return quotas


def quota(folder: Path) -> Optional[float]:
    """Return how many processors a cgroup may use; None for all: it has no quota, or the controller is off there."""
    if (folder / "cpu.max").exists():
        most, period = (folder / "cpu.max").read_text().split()
        return None if most == "max" else int(most) / int(period)
    if (folder / "cpu.cfs_quota_us").exists():
        microseconds = int((folder / "cpu.cfs_quota_us").read_text())
        return None if microseconds < 0 else microseconds / int((folder / "cpu.cfs_period_us").read_text())
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    return None


def throttled(group: Limited) -> float:
    """Return seconds that a quota has held back the cgroup's tasks, on all processors together."""
    try:
        rows = [line.split() for line in (group.folder / "cpu.stat").read_text().splitlines()]
        stat: Dict[str, int] = {row[0]: int(row[1]) for row in rows if len(row) == 2}
    except (OSError, ValueError):
        return 0.0
    return stat.get("throttled_usec", 0) / 1e6 + stat.get("throttled_time", 0) / 1e9


def attempt(groups: List[Limited]) -> Dict[str, Any]:
    """Do the work once. `idle`, `stolen` and `throttled` are seconds, of all processors together."""
    held, free, others = sum(map(throttled, groups)), unused(), runnable()
    began, spent = time.monotonic(), time.process_time()
    while time.process_time() - spent < WORK:
        pass
    took, share = time.monotonic() - began, time.process_time() - spent
    after = unused()
    found: Dict[str, Any] = {"share": round(share / took, 4), "runnable": max(others, runnable())}
    found["seconds"] = round(took, 4)
    found["throttled"] = round(sum(map(throttled, groups)) - held, 4)
    if free is not None and after is not None:
        found["idle"], found["stolen"] = (round(max(0.0, after[kind] - free[kind]), 2) for kind in range(2))
    return found


def main(seconds: float) -> None:
    """Print `{"cpus", "quotas": [{cgroup, cpus}], "tries": [{share, runnable, seconds, throttled, idle, stolen}]}`.

    `quotas` is null where they cannot be read; `idle` and `stolen` are left out where the kernel does not count them.
    """
    end, pause = time.monotonic() + seconds, 0.1
    tries: List[Dict[str, Any]] = []
    groups = limited()
    os.setpriority(os.PRIO_PROCESS, 0, FIRST)
    autogroup = PROC / "self/autogroup"
    if autogroup.exists():
        autogroup.write_text(str(FIRST))
    while True:
        tries.append(attempt(groups or []))
        if tries[-1]["share"] >= GOOD or time.monotonic() + pause > end:
            break
        time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 — spreads tries, no secret
        pause = min(2 * pause, 4.0)
    quotas = None if groups is None else [{"cgroup": one.name, "cpus": round(one.cpus, 4)} for one in groups]
    json.dump({"cpus": len(os.sched_getaffinity(0)), "quotas": quotas, "tries": tries}, sys.stdout)


if __name__ == "__main__":
    main(float(sys.argv[1]))
