"""The cap on hosts that reboot at the same time, over all runs and all controllers of a journal.

Hosts that come up together flood the subnet manager of their fabric: each link that trains is a sweep and new routes.
A permit is a claim in the journal on a subject of its own. It has a claim's lease, so a dead run's permits come free.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from uuid import uuid4

from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Claim, Deadline, Journal
from clusterctl.steps.executor.lease import kept

POLL_S = 2.0
TURN_S = 0.25

RebootPermits = Callable[[int, Deadline], AbstractContextManager[int]]
"""Waits for permits; its context holds how many hosts may reboot, 1 to the wanted number, until it ends."""


class NoPermitError(UnreachableError):
    """No permit came free before the deadline; nothing was rebooted."""

    kind = "no_permit"


def unlimited(wanted: int, _deadline: Deadline) -> AbstractContextManager[int]:
    """Permit all at once."""
    return nullcontext(wanted)


@dataclass(frozen=True, slots=True)
class RebootPool:
    """Permits to reboot, `at_most` at a time. Thread-safe; of the threads of one process, one at a time asks."""

    journal: Journal
    at_most: int
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @contextmanager
    def taken(self, wanted: int, deadline: Deadline) -> Iterator[int]:
        """Wait for a permit, and yield how many hosts may reboot now: 1 to `wanted`. Return the permits at the end.

        Raises `NoPermitError` at the deadline, and `CancelledError`.
        """
        claims = self._wait(wanted, deadline)
        try:
            with kept(self.journal, claims, lambda: None):  # a reboot that has begun goes on without its permit
                yield len(claims)
        finally:
            self.journal.release(claims.values())

    def _wait(self, wanted: int, deadline: Deadline) -> Mapping[NodeId, Claim]:
        waiting = f"waiting until other hosts are up: {self.at_most} may reboot at once (fabric.reboots)"
        try:
            while not self._turn.acquire(timeout=TURN_S):
                deadline.check(waiting)
            try:
                while not (claims := self._take(wanted)):
                    deadline.sleep(POLL_S, waiting)
            finally:
                self._turn.release()
        except UnreachableError as late:
            raise NoPermitError(late.message, remedy="repeat the command; finished nodes are left alone") from None
        return claims

    def _take(self, wanted: int) -> dict[NodeId, Claim]:
        """Claim free permits. Each call is a run of its own for the journal: a run may claim again what it has."""
        permits = [NodeId(f"reboot permit {number}") for number in range(1, self.at_most + 1)]
        free = self.journal.claim(permits, f"reboot-{uuid4().hex[:12]}").granted
        taken = dict(islice(free.items(), wanted))
        self.journal.release([claim for permit, claim in free.items() if permit not in taken])
        return taken
