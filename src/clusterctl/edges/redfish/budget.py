"""The budget of reading one BMC: answers, bytes, JSON values and time of parsing, over all answers together.

Each answer has limits of its own. A BMC whose every answer is within them may still list thousands of resources of 16
MiB, or a chain of pages that is parsed again from its beginning for each page.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """Limits of one walk.

    The largest walk of the recorded BMCs has 239 answers, 350 kB, 12,300 values, and takes 0.1 s of parsing.

    answers   number of resources
    size      bytes of all answers, refusals among them
    values    JSON values of all answers, about 100 bytes of memory each
    seconds   processor time of parsing
    """

    answers: int = 5000
    size: int = 32 << 20
    values: int = 1_000_000
    seconds: float = 60.0


class ReadBudget:
    """Counts what one walk has read; raises `ParseError` beyond a limit. `processor` returns processor seconds."""

    def __init__(self, limits: ReadLimits, processor: Callable[[], float] = time.thread_time) -> None:
        self._limits = limits
        self._processor = processor
        self._answers = self._size = self._values = 0
        self._seconds = 0.0

    def plan(self, answers: int) -> None:
        """Count so many resources that are read next; raise before the first of them where they are too many."""
        self._answers += answers
        self._require(self._answers, self._limits.answers, "resources")

    def add(self, content: bytes, header_bytes: int = 0) -> None:
        """Count what came for one of them, before it is parsed."""
        self._size += len(content) + header_bytes
        self._values += content.count(b",") + content.count(b"[") + content.count(b"{")
        self._require(self._size, self._limits.size, "bytes in all resources together")
        self._require(self._values, self._limits.values, "values in all resources together")

    @contextmanager
    def parsing(self) -> Iterator[None]:
        """Count the processor time of the block."""
        began = self._processor()
        yield
        self._seconds += self._processor() - began
        if self._seconds > self._limits.seconds:
            message = f"understanding the BMC's answers took more than {self._limits.seconds:g} s of processor time"
            raise _beyond(message)

    def _require(self, found: int, limit: int, what: str) -> None:
        if found > limit:
            raise _beyond(f"the BMC lists more than {limit} {what}")


def _beyond(message: str) -> ParseError:
    remedy = "look at its Redfish service by hand; reset the BMC or update its firmware: no machine is that large"
    return ParseError(message, remedy=remedy)
