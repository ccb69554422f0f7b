"""Calls on many nodes at once, with the run's claims renewed all the while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from typing import TypeVar

from clusterctl.steps.executor.lease import Lease

T = TypeVar("T")


def each(calls: Sequence[Callable[[], T]], workers: int, lease: Lease | None = None) -> Iterator[T]:
    """Yield the result of each call as soon as it is there; `lease`: of the nodes that the calls change."""
    kept = nullcontext() if lease is None else lease.kept()
    with kept, ThreadPoolExecutor(max(1, min(workers, len(calls))), "orders") as pool:
        for future in as_completed([pool.submit(call) for call in calls]):
            yield future.result()
