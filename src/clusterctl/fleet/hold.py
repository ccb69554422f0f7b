"""A person's hold: nobody touches the node."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.until import in_words


@dataclass(frozen=True, slots=True)
class PersonsHold:
    """No step touches the node from `at` on, until it is released or `until` has passed (None: until released)."""

    reason: str
    by: str
    at: datetime
    until: datetime | None = None

    def active(self, now: datetime) -> bool:
        return self.until is None or now < self.until

    def __str__(self) -> str:
        until = "until released" if self.until is None else f"until {in_words(self.until)}"
        return f"held by {self.by} {until}: {self.reason}"
