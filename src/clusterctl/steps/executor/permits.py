"""Limits over all runs and all controllers of a journal: so many hosts may reboot, be installed or come on at a time.

A permit is a claim in the journal on a subject of its own. It has a claim's lease, so a dead run's permits come free.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from uuid import uuid4

from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.stagger import Stagger
from clusterctl.ports import Claim, Deadline, Journal
from clusterctl.steps.executor.lease import RENEW, boot_seconds, kept

log = logging.getLogger(__name__)

POLL_S = 2.0
TURN_S = 0.25

OnWait = Callable[[str], None]
"""Receives what a run waits for, as text."""
RebootPermits = Callable[[int, Deadline], AbstractContextManager[int]]
"""Waits for permits; its context holds how many hosts may reboot, 1 to the wanted number, until it ends."""


def logged(text: str) -> None:
    """Write into the run's log what it waits for."""
    log.info(text)


class NoPermitError(UnreachableError):
    """No permit came free before the deadline; nothing was rebooted."""

    kind = "no_permit"


def unlimited(wanted: int, _deadline: Deadline) -> AbstractContextManager[int]:
    """Permit all at once."""
    return nullcontext(wanted)


@dataclass(frozen=True, slots=True)
class PermitPool:
    """`at_most` permits of one kind. Thread-safe; of the threads of one process, one at a time waits.

    waiting  what a run prints while it waits for one, once for each wait, by `on_wait`
    rest_s   seconds for which a returned permit is not given again
    pace     returns how many of `at_most` may be given at present
    """

    journal: Journal
    kind: str
    at_most: int
    waiting: str
    on_wait: OnWait = logged
    rest_s: float = 0.0
    pace: Callable[[int], int] = lambda at_most: at_most
    _turn: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @contextmanager
    def taken(self, wanted: int, deadline: Deadline) -> Iterator[int]:
        """Wait for a permit, and yield how many hosts may go on now: 1 to `wanted`. Return the permits at the end.

        Raises `NoPermitError` at the deadline, and `CancelledError`.
        """
        claims = self._wait(wanted, deadline)
        try:
            with kept(self.journal, claims, lambda: None):  # what has begun goes on without its permit
                yield len(claims)
        finally:
            self.journal.release(claims.values(), self.rest_s)

    def take(self, wanted: int) -> dict[NodeId, Claim]:
        """Claim up to `wanted` permits that are free now. Who takes them renews and releases the claims."""
        prefix = f"{self.kind} permit "
        taken = {owner.subject for owner in self.journal.owners(prefix) if owner.live}
        free = [name for number in range(1, self.at_most + 1) if (name := f"{prefix}{number}") not in taken]
        left = self.pace(self.at_most) - len(taken)
        run = f"{self.kind}-{uuid4().hex[:12]}"  # for the journal each call is a run: a run may claim what it has again
        granted: dict[NodeId, Claim] = {}
        while free and (missing := min(wanted, left) - len(granted)) > 0:
            claims = self.journal.claim(map(NodeId, free[:missing]), run)
            granted |= claims.granted
            left -= len(claims.refused)  # another run was faster
            free = free[missing:]
        return granted

    def _wait(self, wanted: int, deadline: Deadline) -> Mapping[NodeId, Claim]:
        try:
            while not self._turn.acquire(timeout=TURN_S):
                deadline.check(self.waiting)
            try:
                claims = self.take(wanted)
                if not claims:
                    self.on_wait(self.waiting)
                while not claims:
                    deadline.sleep(POLL_S, self.waiting)
                    claims = self.take(wanted)
            finally:
                self._turn.release()
        except UnreachableError as late:
            raise NoPermitError(late.message, remedy="repeat the command; finished nodes are left alone") from None
        return claims


def reboot_pool(
    journal: Journal, at_most: int, on_wait: OnWait = logged, pace: Callable[[int], int] = lambda at_most: at_most
) -> PermitPool:
    """Return the cap on reboots.

    Hosts that come up together flood the subnet manager of their fabric: each link that trains is a sweep and new
    routes.
    """
    waiting = f"waiting until other hosts are up: {at_most} may reboot at once (fabric.reboots)"
    return PermitPool(journal, "reboot", at_most, waiting, on_wait, pace=pace)


def install_pool(journal: Journal, at_most: int) -> PermitPool:
    """Return the cap on installs."""
    waiting = f"waiting until other runs have installed theirs: {at_most} may be installed at once (waves.at_once)"
    return PermitPool(journal, "install", at_most, waiting)


def maas_pool(journal: Journal, at_most: int, on_wait: OnWait = logged) -> PermitPool:
    """Return the cap on requests that change something in MAAS: its region serves every controller of the site."""
    waiting = f"waiting until MAAS has answered other runs: {at_most} requests at once (provisioning.requests_at_once)"
    return PermitPool(journal, "maas", at_most, waiting, on_wait)


@dataclass(frozen=True, slots=True)
class PowerPools:
    """The cap on machines that come on, one for each group: a rack, a PDU or the site. Thread-safe."""

    journal: Journal
    stagger: Stagger
    on_wait: OnWait = logged
    _pools: dict[str, PermitPool] = field(default_factory=dict, repr=False, compare=False)

    @contextmanager
    def held(self, group: str, deadline: Deadline) -> Iterator[None]:
        """Wait until one more machine of the group may come on; count it until it is on, and for the stagger after.

        Raises `UnreachableError` at the deadline, and `CancelledError`.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._pool(group).taken(1, deadline))
            except NoPermitError as late:
                raise UnreachableError(late.message, remedy=late.remedy) from None
            yield

    def _pool(self, group: str) -> PermitPool:
        most, seconds = self.stagger.at_once, self.stagger.seconds
        where = f"of {group}" if group else "of the site"
        waiting = f"waiting until other machines {where} are on: {most} within {seconds:g} s (power.stagger)"
        pool = PermitPool(self.journal, f"power-on {group}", most, waiting, self.on_wait, seconds)
        return self._pools.setdefault(group, pool)


class NodePermits:
    """The permits of the nodes that are under way in one step of a run. Thread-safe.

    The claims are renewed after a part of their lease, where `keep` is called often enough.
    """

    def __init__(self, pool: PermitPool, now: Callable[[], float] = boot_seconds) -> None:
        self._pool = pool
        self._now = now
        self._held: dict[NodeId, Claim] = {}
        self._left: list[Claim] = []
        self._renewed = now()
        self._asks_again = 0.0
        self._known_waiting: set[NodeId] = set()
        self._news: list[NodeId] = []
        self._lock = threading.RLock()

    @property
    def waiting(self) -> str:
        """What a run prints while it waits."""
        return self._pool.waiting

    def begin(self, nodes: Sequence[NodeId]) -> list[NodeId]:
        """Return the first of the nodes, as many as there are permits for; each holds one until `leave`.

        The journal is asked again no sooner than `POLL_S` after there were too few.
        """
        with self._lock:
            return self._begun(nodes)

    def _begun(self, nodes: Sequence[NodeId]) -> list[NodeId]:
        if not nodes or self._now() < self._asks_again:
            return []
        self._return()
        claims = list(self._pool.take(len(nodes)).values())
        if len(claims) < len(nodes):
            self._asks_again = self._now() + POLL_S
        begun = list(nodes[: len(claims)])
        self._news += [node for node in nodes[len(claims) :] if node not in self._known_waiting]
        self._known_waiting.update(nodes[len(claims) :])
        self._held.update(zip(begun, claims, strict=True))
        return begun

    def newly_waiting(self) -> list[NodeId]:
        """Return the nodes for which there was no permit; each of them once."""
        with self._lock:
            news, self._news = self._news, []
            return news

    def leave(self, node: NodeId) -> None:
        """Return the node's permit, if it has one, with the next call of `keep`, `begin` or `close`."""
        with self._lock:
            claim = self._held.pop(node, None)
            if claim is not None:
                self._left.append(claim)

    def keep(self) -> None:
        """Return the permits of those that have left, all at once; renew the others when it is time to.

        A node whose permit was lost meanwhile goes on: it is under way.
        """
        with self._lock:
            self._return()
            if self._held and self._now() - self._renewed > RENEW * self._pool.journal.lease_s:
                self._pool.journal.renew(self._held.values())
                self._renewed = self._now()

    def close(self) -> None:
        """Return all permits."""
        with self._lock:
            self._left += self._held.values()
            self._held.clear()
            self._return()

    def _return(self) -> None:
        if self._left:
            self._pool.journal.release(self._left)
            self._left.clear()
