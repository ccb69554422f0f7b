"""Proven nodes that a small batch is measured beside: lent to one batch at a time, and nothing is reported of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from clusterctl.steps.guests import Guest

ENOUGH = 4
"""A batch smaller than this is given company, as far as there is any."""


class Company:
    """Thread-safe: batches of one step run side by side."""

    def __init__(self) -> None:
        self._idle: dict[str, Guest] = {}
        self._lock = threading.Lock()

    def add(self, guest: Guest) -> None:
        """The node is proven: it may be measured with from now on."""
        with self._lock:
            self._idle[guest.node.name] = replace(guest, findings=[], evidence={})

    @contextmanager
    def lent(self, guests: Sequence[Guest]) -> Iterator[list[Guest]]:
        """Enough idle proven nodes of the guests' SKU to measure them with; given back at the end."""
        mates = self._take(guests)
        try:
            yield mates
        finally:
            for mate in mates:
                self.add(mate)

    def _take(self, guests: Sequence[Guest]) -> list[Guest]:
        wanted = max(0, ENOUGH - len(guests))
        here = {guest.node.name for guest in guests}
        with self._lock:
            fitting = [
                name
                for name, mate in sorted(self._idle.items())
                if name not in here and mate.kind.sku.name == guests[0].kind.sku.name
            ]
            return [self._idle.pop(name) for name in fitting[:wanted]]
