"""Notes of the flows that this host sends: the lab's fabric plays the counters of the ports on their way.

A note is a file of one JSON object, in a folder that every user may write to and that a boot empties. A process that
sends holds a lock on its note: where it is killed, the lock is gone, and nothing more is counted.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time

FOLDER = os.environ.get("CLUSTERCTL_LAB_FLOWS", "/run/lock/clusterctl-lab-flows")


def begin(source: str, target: str) -> float:
    """Note that this process begins to send from one adapter to another, by their GUIDs; return when."""
    began = time.time()
    with contextlib.suppress(OSError):  # a full file system: the flow is sent all the same
        previous = os.umask(0)
        try:
            os.makedirs(FOLDER, 0o1777, exist_ok=True)  # noqa: PTH103 — see small_files
        finally:
            os.umask(previous)
        _write({"source": source, "target": target, "began": began, "ended": None}, held=True)
    return began


def end(source: str, target: str, began: float) -> None:
    """Note that it has ended."""
    with contextlib.suppress(OSError):
        _write({"source": source, "target": target, "began": began, "ended": time.time()})


def _write(note: dict[str, object], *, held: bool = False) -> None:
    """Replace the note of this process as a whole. `held`: lock it for as long as this process lives."""
    path = f"{FOLDER}/{os.getpid()}.json"
    descriptor = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    if held:
        fcntl.flock(os.dup(descriptor), fcntl.LOCK_EX)  # the duplicate stays open: the lock is that of the open file
    with os.fdopen(descriptor, "w") as file:
        json.dump(note, file)
    os.replace(f"{path}.new", path)  # noqa: PTH105 — see small_files
