"""The same by a person's order on many nodes at once, with their claims kept all the while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
_KEEP_S = 1.0


def each(calls: Sequence[Callable[[], T]], workers: int, keep: Callable[[], None]) -> Iterator[T]:
    """Whatever comes of each, as soon as it does; `keep` is called all the while."""
    with ThreadPoolExecutor(max(1, min(workers, len(calls))), "orders") as pool:
        pending: set[Future[T]] = {pool.submit(call) for call in calls}
        while pending:
            done, pending = wait(pending, timeout=_KEEP_S, return_when=FIRST_COMPLETED)
            keep()
            for future in done:
                yield future.result()
