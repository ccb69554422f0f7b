"""How far a machine's power-on self-test is."""

from __future__ import annotations

import enum


class Post(enum.Enum):
    """UNKNOWN: this BMC does not tell."""

    RUNNING = "running"
    DONE = "done"
    UNKNOWN = "unknown"
