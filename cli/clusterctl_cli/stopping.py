"""How an operator stops a command that takes long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from clusterctl_cli.text import echo


@contextmanager
def stoppable(*, repeatable: bool = False) -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set; a second signal ends the process at once.

    `repeatable`: a second signal changes nothing, as it comes from an operator who repeats a request to stop.
    """
    cancelled = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if cancelled.is_set() and not repeatable:
            raise KeyboardInterrupt
        again = cancelled.is_set()
        cancelled.set()  # first: what follows waits where the terminal has stopped its output
        signal.signal(number, stop)
        if not again:
            with suppress(OSError, RuntimeError):  # stderr is gone, or this thread is just writing to it
                echo(f"stopping; what is done is kept{'' if repeatable else ' (once more: stop at once)'}", err=True)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield cancelled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
