"""How an operator stops a command that takes long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from clusterctl_cli.text import echo


@contextmanager
def stoppable() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set; a second signal ends the process at once."""
    cancelled = threading.Event()

    def stop(number: int, _frame: object) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        echo("stopping; what is done is kept (once more: stop at once)", err=True)
        cancelled.set()
        signal.signal(number, stop)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield cancelled
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
