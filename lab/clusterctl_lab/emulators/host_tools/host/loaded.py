"""Whether this host has run a load since its boot: some faults show only then."""

from __future__ import annotations

import contextlib
import os

FOLDER = os.environ.get("CLUSTERCTL_LAB_LOADED", "/run/lock")
"""A folder that every user may write to, and that a boot empties."""
GPUS, FABRIC = "gpus", "fabric"


def mark(what: str) -> None:
    """Note that a load of the GPUs or the fabric has begun; a host whose file systems are full has no such note."""
    with contextlib.suppress(OSError):
        os.close(os.open(f"{FOLDER}/clusterctl-lab-{what}", os.O_WRONLY | os.O_CREAT, 0o644))


def loaded(what: str) -> bool:
    """Return whether such a load has begun."""
    return os.path.exists(f"{FOLDER}/clusterctl-lab-{what}")  # noqa: PTH110 — see small_files
