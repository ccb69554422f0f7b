"""Runs on a node, as the built-in probe `cpu-load SECONDS`: the processes that use the processors, except the
burn-in's own.

Standard library only, Python 3.9. It reads /proc (proc_pid_stat(5)) twice, SECONDS apart. The session that it runs in
is left out with all that it started. The arguments of a process are left out: they may hold secrets.
"""

from __future__ import annotations

import json
import os
import pwd
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

PROC = Path("/proc")
KTHREADD = 2  # the parent of all kernel threads
INIT = 1
MOST = 10  # processes in the answer
LEAST = 1.0  # percent of a processor


class Seen(NamedTuple):
    """`ticks`: processor time so far, user and system."""

    started: int
    name: str
    parent: int
    ticks: int


def seen(folder: Path) -> Seen | None:
    """Return the process; None where it has ended meanwhile."""
    try:
        stat = (folder / "stat").read_text(errors="replace")
    except OSError:
        return None
    name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 1 :].split()
    return Seen(int(fields[19]), name, int(fields[1]), int(fields[11]) + int(fields[12]))


def look(proc: Path) -> dict[int, Seen]:
    """Return every process by its number."""
    found = ((int(entry.name), seen(entry)) for entry in proc.iterdir() if entry.name.isdigit())
    return {pid: one for pid, one in found if one is not None}


def ancestors(pid: int, processes: dict[int, Seen]) -> list[int]:
    """Return the process and its parents, without the first process of the system."""
    chain: list[int] = []
    while pid in processes and pid > INIT and pid not in chain:
        chain.append(pid)
        pid = processes[pid].parent
    return chain


def session(pid: int, processes: dict[int, Seen]) -> int:
    """Return the process that all of this session come from: below the SSH server, or a service of the system."""
    chain = ancestors(pid, processes)
    return chain[-2] if len(chain) > 1 and processes[chain[-1]].name == "sshd" else chain[-1] if chain else pid


def user(proc: Path, pid: int) -> str:
    """Return the name of the process's user; the number where it has no name, empty where the process has ended."""
    try:
        uid = (proc / str(pid)).stat().st_uid
    except OSError:
        return ""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def main(seconds: float, proc: Path = PROC) -> int:
    """Print `{"seconds", "looked_at", "processes": [{pid, name, user, kernel, percent}]}`, the greatest first."""
    began, before = time.monotonic(), look(proc)
    time.sleep(seconds)
    after = look(proc)
    spent = time.monotonic() - began
    own = session(os.getpid(), after)
    used = []
    for pid, one in after.items():
        first = before.get(pid)
        if own in ancestors(pid, after) or pid == own:
            continue
        ticks = one.ticks - (first.ticks if first is not None and first.started == one.started else 0)
        used.append((100 * ticks / os.sysconf("SC_CLK_TCK") / spent, pid, one))
    processes: list[dict[str, Any]] = [
        {
            "pid": pid,
            "name": one.name,
            "user": user(proc, pid),
            "kernel": KTHREADD in (pid, one.parent),
            "percent": round(percent, 1),
        }
        for percent, pid, one in sorted(used, key=lambda found: -found[0])[:MOST]
        if percent >= LEAST
    ]
    json.dump({"seconds": round(spent, 2), "looked_at": len(after), "processes": processes}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
