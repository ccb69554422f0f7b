"""Work of many threads, done together: each waits for its own result, as if it had been alone."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from clusterctl.fleet.errors import JournalUnavailableError

A = TypeVar("A")
B = TypeVar("B")


@dataclass(slots=True, eq=False)
class _Call(Generic[A, B]):
    """What one thread asks for. `woken`: it has its results, or is the one that works now (`leads`)."""

    asked: Sequence[A]
    results: list[B | Exception] | None = None
    leads: bool = False
    woken: threading.Event = field(default_factory=threading.Event)


class Gathered(Generic[A, B]):
    """Calls `work` with what threads ask for: one thread works for all that have asked meanwhile. Thread-safe.

    `work` does all or nothing and returns a result for each. Where it raises, each is done alone, so that one cannot
    spoil another; a journal that does not answer is every one's error at once. `most`: so many at a time.
    """

    def __init__(self, work: Callable[[Sequence[A]], Sequence[B | Exception]], most: int) -> None:
        self._work = work
        self._most = most
        self._waiting: deque[_Call[A, B]] = deque()
        self._lock = threading.Lock()
        self._busy = False

    def each(self, asked: Sequence[A]) -> list[B | Exception]:
        """Return, in order, what came of each: its result, or what `work` raised or returned as its exception."""
        call: _Call[A, B] = _Call(asked)
        with self._lock:
            self._waiting.append(call)
            call.leads, self._busy = not self._busy, True
        try:
            if not call.leads:
                call.woken.wait()
            while call.results is None:
                self._serve(self._taken())
        finally:
            self._leave(call)
        return call.results

    def _taken(self) -> list[_Call[A, B]]:
        """Return the calls to serve next: one at least, and no more than `most` together."""
        with self._lock:
            calls = [self._waiting.popleft()]
            while self._waiting and sum(len(one.asked) for one in (*calls, self._waiting[0])) <= self._most:
                calls.append(self._waiting.popleft())
            return calls

    def _leave(self, call: _Call[A, B]) -> None:
        """Appoint the next one to work, where it was this call's turn."""
        with self._lock:
            if call in self._waiting:  # the thread was interrupted
                self._waiting.remove(call)
            if not call.leads:
                return
            if self._waiting:
                self._waiting[0].leads = True
                self._waiting[0].woken.set()
            else:
                self._busy = False

    def _serve(self, calls: Sequence[_Call[A, B]]) -> None:
        """Do what the calls ask for; each has its results afterwards, whatever happens."""
        asked = [one for call in calls for one in call.asked]
        ended = JournalUnavailableError("the program was ended while it wrote", remedy="run the command again")
        results: list[B | Exception] = []
        try:
            for start in range(0, len(asked), self._most):
                results += self._done(asked[start : start + self._most])
        finally:
            left = iter([*results, *[ended] * (len(asked) - len(results))])
            for call in calls:
                call.results = [next(left) for _ in call.asked]
                call.woken.set()

    def _done(self, asked: Sequence[A]) -> Sequence[B | Exception]:
        try:
            return self._work(asked)
        except JournalUnavailableError as error:
            return [error] * len(asked)
        except Exception as error:  # noqa: BLE001 — each thread gets what is its own
            return [error] if len(asked) == 1 else [self._alone(one) for one in asked]

    def _alone(self, asked: A) -> B | Exception:
        try:
            (result,) = self._work([asked])
        except Exception as error:  # noqa: BLE001 — likewise
            return error
        return result
