"""How a command that takes long is stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def stoppable(cancelled: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask the run to stop; a second one ends it at once."""

    def stop(number: int, _frame: object) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        click.echo("stopping; what is done is kept (again to stop at once)", err=True)
        cancelled.set()
        signal.signal(number, stop)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
