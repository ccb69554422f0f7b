"""The lease of a run on its nodes: renewed while it works, and checked before everything that it changes."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from clusterctl.fleet.errors import CancelledError, ClaimLostError, ClusterctlError, UsageError
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Claim, Journal

log = logging.getLogger(__name__)

RENEW = 0.25
"""The part of the lease after which it is renewed."""
TRUST = 0.5
"""The part of the lease for which its last renewal counts: what begins then has as long again to arrive before
another run may claim the node."""


def boot_seconds() -> float:
    """Return seconds since boot, the machine's sleep included (CLOCK_BOOTTIME, clock_gettime(2)); never set back."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """The claims of one run. Thread-safe.

    A run that was suspended, or lost its connection to the database, finds out here before it acts: its last renewal is
    too old then, and it renews again. `wall`: the clock of the day, which shows what `now` cannot: that a virtual
    machine was paused, and that the clock was set, by which SQLite's claims expire.
    """

    def __init__(
        self,
        journal: Journal,
        claims: Mapping[NodeId, Claim],
        now: Callable[[], float] = boot_seconds,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._journal = journal
        self._held = dict(claims)
        self._lost: dict[NodeId, str] = {}
        self._now = now
        self._wall = wall
        self._confirmed = self._confirmed_wall = -math.inf
        self._closed = False
        self._lock = threading.RLock()

    @property
    def lost(self) -> Mapping[NodeId, str]:
        """The nodes that this run has lost, and which run took each."""
        with self._lock:
            return dict(self._lost)

    def claim(self, node: NodeId) -> Claim:
        """Return the claim to write under. Raise `ClaimLostError` when it is known to be lost."""
        with self._lock:
            if node not in self._held:
                raise _gone(node, self._lost.get(node, "this run has given it back"))
            return self._held[node]

    def fence(self, nodes: Iterable[NodeId]) -> Callable[[], None]:
        """Return the fence for `Deadline.fenced`: it raises `ClaimLostError` unless all of `nodes` are certainly ours.

        A node that was given back does not count: nothing more is done to it.
        """
        fenced = frozenset(nodes)

        def check() -> None:
            with self._lock:
                if self._closed:
                    raise CancelledError("the run is over")
                if self._held and self._age() > TRUST * self._journal.lease_s:
                    self._renew()
                for node in self._lost.keys() & fenced:
                    raise _gone(node, self._lost[node])

        return check

    def keep(self) -> None:
        """Renew when it is time to."""
        with self._lock:
            if self._age() > RENEW * self._journal.lease_s:
                self._renew()

    @contextmanager
    def kept(self, *others: Callable[[], None]) -> Iterator[None]:
        """Keep it in the background for the time, and call `others`, which keep what else the run holds.

        The run's own thread may wait for long: for a terminal that stopped its output, a disk, or a slow machine.
        """

        def keep() -> bool:
            for one in (self.keep, *others):
                with suppress(ClusterctlError):  # the journal does not answer: the next turn or the fence decides
                    one()
            return True

        self.keep()
        with repeated(keep, RENEW * self._journal.lease_s, "claims"):
            yield

    def lose(self, node: NodeId, words: str) -> None:
        """Note that the journal refused an event under this claim."""
        with self._lock:
            if self._held.pop(node, None) is not None:
                self._lost[node] = words

    def give_back(self, nodes: Iterable[NodeId]) -> None:
        """Release the claims: other runs may have the nodes at once."""
        with self._lock:
            claims = [claim for node in nodes if (claim := self._held.pop(node, None)) is not None]
        if claims:
            self._journal.release(claims)

    def close(self) -> None:
        """End the lease: a thread that still runs may change nothing more."""
        with self._lock:
            self._closed = True

    def _age(self) -> float:
        return max(self._now() - self._confirmed, self._wall() - self._confirmed_wall)

    def _renew(self) -> None:
        asked, wall = self._now(), self._wall()
        for node, words in self._journal.renew(self._held.values()).items():
            self.lose(node, words)
        self._confirmed, self._confirmed_wall = asked, wall


@contextmanager
def sole_claim(journal: Journal, subject: NodeId, run: str, lost: Callable[[], None] = lambda: None) -> Iterator[Claim]:
    """Claim for the time what a journal has one of: the fabric, the night. Raise `UsageError` naming the run that has
    it. It is renewed in the background; `lost` is called once where another run has taken it all the same.
    """
    claims = journal.claim([subject], run)
    if subject not in claims.granted:
        remedy = "wait until it has finished, then look again"
        raise UsageError(f"another run acts on it: {claims.refused[subject]}", where=subject, remedy=remedy)
    claim = claims.granted[subject]
    try:
        with kept(journal, {subject: claim}, lost):
            yield claim
    finally:
        journal.release([claim])


@contextmanager
def kept(journal: Journal, claims: Mapping[NodeId, Claim], lost: Callable[[], None]) -> Iterator[None]:
    """Renew the claims in the background for the time; call `lost` once where another run has taken one of them."""
    lease = Lease(journal, claims)

    def renew() -> bool:
        try:
            lease.keep()
            lease.fence(claims)()
        except ClaimLostError:
            lost()
            return False
        except ClusterctlError:  # the journal does not answer: the next renewal decides
            pass
        return True

    with repeated(renew, RENEW * journal.lease_s, "claims"):
        yield


@contextmanager
def repeated(act: Callable[[], bool], seconds: float, name: str) -> Iterator[None]:
    """Call `act` in a thread of this name, every so many seconds, for the time or until it returns False.

    What it raises is logged, and it is called again: without the thread the run would lose its claims, or see no
    request to stop.
    """
    ended = threading.Event()

    def turns() -> None:
        goes_on = True
        while goes_on and not ended.wait(seconds):
            try:
                goes_on = act()
            except Exception:
                log.exception("%s failed, and goes on", name)

    thread = threading.Thread(target=turns, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _gone(node: NodeId, words: str) -> ClaimLostError:
    return ClaimLostError(words, where=node, remedy="let that run finish, then run again")
