"""How many loads this host has run since its boot, once its machine has changed: some faults show only under load."""

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
        note = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(note, b".")
        os.close(note)


def loads(what: str) -> int:
    """Return how many such loads have begun since the boot; 0 where none has since the machine last changed."""
    try:
        note = os.stat(f"{FOLDER}/clusterctl-lab-{what}")  # noqa: PTH116
        return note.st_size if note.st_mtime > os.stat(FACTS).st_mtime else 0  # noqa: PTH116
    except OSError:
        return 0


def loaded(what: str) -> bool:
    """Return whether such a load has begun since the machine last changed."""
    return loads(what) > 0
