"""When: the clock, and until when a call may go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from clusterctl.fleet.errors import CancelledError, UnreachableError


class Clock(Protocol):
    """Time, as an argument: `now` is UTC and aware."""

    def now(self) -> datetime: ...


class Timer(Protocol):
    """Time that passes: `now` is monotonic seconds; `wait` ends after `seconds`, or when `event` is set."""

    def now(self) -> float: ...

    def wait(self, event: threading.Event, seconds: float) -> None: ...


class _SystemTimer:
    def now(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> None:
        event.wait(seconds)


SYSTEM_TIMER = _SystemTimer()


def _unfenced() -> None:
    """Permit every act: for reads, and for acts without a claim."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When to give up (seconds of `timer`), the run's cancel token, and the fence of what it may act on.

    `fence` raises `ClaimLostError` once the right to act is gone. The caller of a side effect calls `check` just
    before each request that does.
    """

    at: float
    cancelled: threading.Event = field(default_factory=threading.Event)
    fence: Callable[[], None] = field(default=_unfenced, repr=False)
    timer: Timer = field(default=SYSTEM_TIMER, repr=False)

    @classmethod
    def after(cls, seconds: float, cancelled: threading.Event | None = None, timer: Timer = SYSTEM_TIMER) -> Deadline:
        return cls(timer.now() + seconds, cancelled or threading.Event(), timer=timer)

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - self.timer.now())

    def within(self, seconds: float) -> Deadline:
        """Return the same cancel token, fence and timer, at most `seconds` from now."""
        return replace(self, at=min(self.at, self.timer.now() + seconds))

    def fenced(self, fence: Callable[[], None]) -> Deadline:
        """Return the same deadline, for acts that `fence` must allow."""
        return replace(self, fence=fence)

    def check_cancelled(self, doing: str) -> None:
        """Raise `CancelledError` where the run was stopped."""
        if self.cancelled.is_set():
            raise CancelledError(f"stopped while {doing}")

    def check(self, doing: str) -> None:
        """Raise `CancelledError`; past the deadline `UnreachableError` naming what was being done; or as `fence`."""
        self.check_cancelled(doing)
        if self.remaining <= 0:
            raise UnreachableError(f"ran out of time while {doing}")
        self.fence()

    def sleep(self, seconds: float, doing: str) -> None:
        """Wait, but wake at once when cancelled; raises as `check`."""
        self.timer.wait(self.cancelled, min(seconds, self.remaining))
        self.check(doing)
