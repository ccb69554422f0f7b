"""What the kernel must be able to do so that no process of a play outlives its run: `edges/ansible/supervisor.py`."""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.diagnosis import Diagnosis, broken, ok

NAME = "kernel"
PR_GET_CHILD_SUBREAPER = 37


@dataclass(frozen=True, slots=True)
class Seen:
    """`subreaper`: prctl(2) knows PR_SET_CHILD_SUBREAPER; `proc`: /proc shows our own processes."""

    system: str
    release: str
    subreaper: bool
    proc: bool


def check() -> Diagnosis:
    return judge(look())


def look() -> Seen:
    now = ctypes.c_int(0)
    subreaper = ctypes.CDLL(None).prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(now), 0, 0, 0) == 0
    return Seen(platform.system(), platform.release(), subreaper, Path("/proc/self/stat").exists())


def judge(seen: Seen) -> Diagnosis:
    if seen.system != "Linux":
        return broken(NAME, f"this is {seen.system}", "run clusterctl on a Linux machine")
    if not seen.subreaper:
        message = f"Linux {seen.release} cannot adopt orphaned processes"
        return broken(NAME, message, "use a kernel of version 3.4 or newer, outside of sandboxes that forbid prctl")
    if not seen.proc:
        return broken(NAME, "/proc is not mounted", "mount it: mount -t proc proc /proc")
    return ok(NAME, f"Linux {seen.release}")
