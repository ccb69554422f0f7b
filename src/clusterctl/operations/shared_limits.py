"""Limits over all runs of a journal, as the adapters ask for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from clusterctl.fleet.stagger import Stagger
from clusterctl.ports import Deadline, Journal
from clusterctl.steps.executor.permits import PowerPools, maas_pool


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """`on_wait` receives what a run waits for."""

    journal: Journal
    on_wait: Callable[[str], None]

    def power_on(self, stagger: Stagger) -> Callable[[str, Deadline], AbstractContextManager[object]]:
        """Return the permit of one more machine of a group to come on."""
        return PowerPools(self.journal, stagger, self.on_wait).held

    def maas(self, at_most: int) -> Callable[[Deadline], AbstractContextManager[object]]:
        """Return the turn of one more request that changes something in MAAS."""
        pool = maas_pool(self.journal, at_most, self.on_wait)
        return lambda deadline: pool.taken(1, deadline)
