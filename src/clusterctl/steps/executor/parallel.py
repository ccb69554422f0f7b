"""Calls on many nodes at once, with the run's claims renewed all the while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
_RENEW_S = 1.0


def each(calls: Sequence[Callable[[], T]], workers: int, renew: Callable[[], None]) -> Iterator[T]:
    """Yield the result of each call as soon as it is there; `renew` is called at least once a second meanwhile."""
    with ThreadPoolExecutor(max(1, min(workers, len(calls))), "orders") as pool:
        pending: set[Future[T]] = {pool.submit(call) for call in calls}
        while pending:
            done, pending = wait(pending, timeout=_RENEW_S, return_when=FIRST_COMPLETED)
            renew()
            for future in done:
                yield future.result()
