"""Whether this host has run a load since its boot and since its machine last changed: some faults show only then."""

from __future__ import annotations

import contextlib
import os

FACTS = os.environ.get("CLUSTERCTL_LAB_FACTS", "/etc/clusterctl-lab/machine.json")
"""The lab writes it whenever the machine changes."""
FOLDER = os.environ.get("CLUSTERCTL_LAB_LOADED", "/run/lock")
"""A folder that every user may write to, and that a boot empties."""
GPUS, FABRIC = "gpus", "fabric"


def mark(what: str) -> None:
    """Note that a load of the GPUs or the fabric has begun; a host whose file systems are full has no such note."""
    path = f"{FOLDER}/clusterctl-lab-{what}"
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
        os.utime(path)


def loaded(what: str) -> bool:
    """Return whether such a load has begun since the machine last changed."""
    try:
        return os.stat(f"{FOLDER}/clusterctl-lab-{what}").st_mtime > os.stat(FACTS).st_mtime  # noqa: PTH116
    except OSError:
        return False
