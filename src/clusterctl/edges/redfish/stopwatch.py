"""How slow a BMC is: the longest that it has taken for an answer, its connection included."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopwatch:
    """`clock` is any monotonic seconds. What ends in an error tells nothing of how fast this BMC answers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.slowest = 0.0

    @contextmanager
    def answer(self) -> Iterator[None]:
        """Around one request and its answer."""
        began = self._clock()
        yield
        self.slowest = max(self.slowest, self._clock() - began)
