"""Time that passes only where a test or a wait makes it pass."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from lab.tests.lab_kit import eventually
from tests.faulty import Fault

FOREVER_S = 1e6
"""Longer than any deadline of a test."""


class FakeTimer:
    """A `Timer` whose waits end at once, and move its time on by what they would have taken.

    looks  number of calls of `now`: a loop that reads its input and checks its deadline has read what came before
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._lock = threading.Lock()
        self.looks = 0
        self._act: Callable[[], object] | None = None

    def now(self) -> float:
        self.looks += 1
        return self._seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        self._act, act = None, self._act
        if act is not None:
            act()
        if not event.is_set():
            self.advance(seconds)

    def advance(self, seconds: float = FOREVER_S) -> None:
        with self._lock:
            self._seconds += seconds

    def act_when_waited(self, act: Callable[[], object]) -> FakeTimer:
        """Return this timer, which does `act` once, as soon as someone waits: what is waited for then happens."""
        self._act = act
        return self

    def passed(self) -> bool:
        """Return whether all deadlines have passed."""
        return self._seconds >= FOREVER_S

    def then(self, fault: Fault) -> Fault:
        """Return a fault of a server that first lets all deadlines pass."""

        def late(handler: Any) -> None:
            self.advance()
            fault(handler)

        return late

    def advance_when(self, ready: Callable[[], object], looks: int = 8) -> None:
        """Let all deadlines pass once `ready` holds and the time was then looked at `looks` times."""

        def watch() -> None:
            eventually(lambda: bool(ready()), 600)
            until = self.looks + looks
            eventually(lambda: self.looks >= until, 600)
            self.advance()

        threading.Thread(target=watch, daemon=True).start()
