"""The controller's clock."""

from __future__ import annotations

from datetime import UTC, datetime


class SystemClock:
    """The time of the operating system, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)


CLOCK = SystemClock()
