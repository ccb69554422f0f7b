"""What an iterator yields, in lists: the caller takes all that has come meanwhile, and works on it together."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Came(Generic[T]):
    item: T


@dataclass(frozen=True, slots=True)
class _End:
    """The iterator is at its end, or has raised `error`."""

    error: BaseException | None = None


def bursts(items: Iterable[T], most: int = 100) -> Iterator[list[T]]:
    """Yield the items in their order, in lists of at most `most`. They are read in a thread of their own.

    What the iterator raises is raised once the items before it were yielded. Where the caller stops earlier, the thread
    takes one more item and then closes the iterator.
    """
    came: SimpleQueue[_Came[T] | _End] = SimpleQueue()
    stopped = threading.Event()
    name = threading.current_thread().name
    threading.Thread(target=_read, args=(items, came, stopped), daemon=True, name=name).start()
    try:
        end: _End | None = None
        while end is None:
            found, end = _present(came, most)
            if found:
                yield found
        if end.error is not None:
            raise end.error
    finally:
        stopped.set()


def _read(items: Iterable[T], came: SimpleQueue[_Came[T] | _End], stopped: threading.Event) -> None:
    try:
        for item in items:
            came.put(_Came(item))
            if stopped.is_set():
                return
    except BaseException as error:  # noqa: BLE001 — the caller raises it in its own thread
        came.put(_End(error))
    else:
        came.put(_End())


def _present(came: SimpleQueue[_Came[T] | _End], most: int) -> tuple[list[T], _End | None]:
    """Wait for one item at least; return what is there, and the end where it has come."""
    found: list[T] = []
    while len(found) < most:
        try:
            one = came.get_nowait() if found else came.get()
        except Empty:
            break
        if isinstance(one, _End):
            return found, one
        found.append(one.item)
    return found, None
