"""Reads a state again and again while a test runs."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Self


class Sampler(ABC):
    """Calls its `look` every `period_s` while it is entered, in a thread of its own; what that raises, leaving raises."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1, type(self).__name__)

    @abstractmethod
    def look(self) -> None:
        """Note what there is now."""

    def __enter__(self) -> Self:
        self._looking = self._pool.submit(self._keep_looking)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pool.shutdown()
        self._looking.result()

    def _keep_looking(self) -> None:
        while not self._stop.wait(self._period_s):
            self.look()
