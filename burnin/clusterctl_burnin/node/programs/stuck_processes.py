"""Runs on a node, as the built-in probe `stuck-processes SECONDS`: processes that hang in the kernel (state D).

Standard library only, Python 3.9. It reads /proc (proc_pid_stat(5), proc_pid_status(5)) repeatedly for SECONDS.
It reports each process that is in state D at every reading and has not run since the first one: its context switches
are the same. It ends at once where no process is left to watch. The arguments of a process are left out: they may hold
secrets.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

PROC = Path("/proc")
KTHREADD = 2  # the parent of all kernel threads
PAUSE = 0.25  # seconds between two looks


class Seen(NamedTuple):
    """`switches`: how often it has left a processor, willingly or not."""

    pid: int
    started: int
    name: str
    state: str
    parent: int
    switches: int


def seen(folder: Path) -> Seen | None:
    """Return the process; None where it has ended meanwhile."""
    try:
        stat = (folder / "stat").read_text()
        status = (folder / "status").read_text().splitlines()
    except OSError:
        return None
    name, fields = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 1 :].split()
    switches = sum(int(line.split()[1]) for line in status if "ctxt_switches:" in line)
    return Seen(int(folder.name), int(fields[19]), name, fields[0], int(fields[1]), switches)


def look(proc: Path) -> list[Seen]:
    """Return every process."""
    found = (seen(entry) for entry in proc.iterdir() if entry.name.isdigit())
    return [one for one in found if one is not None]


def watch(asleep: list[Seen], until: float, proc: Path) -> list[Seen]:
    """Return those that are just the same at each look; the last one is at `until` (`time.monotonic()`)."""
    while asleep:
        over = time.monotonic() >= until
        asleep = [one for one in asleep if seen(proc / str(one.pid)) == one]
        if over:
            break
        time.sleep(max(0.0, min(PAUSE, until - time.monotonic())))
    return asleep


def described(one: Seen, proc: Path) -> dict[str, Any]:
    """Return it with the function of the kernel that it waits in; empty where that is unknown."""
    try:
        waits_in = (proc / str(one.pid) / "wchan").read_text().strip("\x00\n ")
    except OSError:
        waits_in = ""
    kernel = KTHREADD in (one.pid, one.parent)
    return {"pid": one.pid, "name": one.name, "kernel": kernel, "waits_in": "" if waits_in == "0" else waits_in}


def main(seconds: float, proc: Path = PROC) -> None:
    """Print `{"seconds", "looked_at", "stuck": [{pid, name, kernel, waits_in}]}`."""
    began = time.monotonic()
    everybody = look(proc)
    stuck = watch([one for one in everybody if one.state == "D"], began + seconds, proc)
    document = {
        "seconds": round(time.monotonic() - began, 1),
        "looked_at": len(everybody),
        "stuck": [described(one, proc) for one in stuck],
    }
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main(float(sys.argv[1]))
