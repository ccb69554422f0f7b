"""The pool of proven nodes that small batches are measured with: lent to one batch at a time, and not reported on."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.partners import ENOUGH, MOST, choose
from clusterctl.ports import Deadline
from clusterctl.steps.burnin.node_under_test import NodeUnderTest

POLL_S = 0.5
"""Seconds between two looks at whether a wait is over, or the run was stopped."""


class PartnerPool:
    """Thread-safe: batches of one step run side by side."""

    def __init__(self) -> None:
        self._idle: dict[str, NodeUnderTest] = {}
        self._changed = threading.Condition()
        self._busy = 0
        self._proven = 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Count a batch as running: its nodes may still become partners of those that have none."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def add(self, node: NodeUnderTest) -> None:
        """Add a proven node: others may be measured with it from now on."""
        with self._changed:
            self._idle[node.name] = replace(node, findings=[], evidence={})
            self._changed.notify_all()

    @contextmanager
    def lend(self, nodes: Sequence[NodeUnderTest], deadline: Deadline) -> Iterator[PartnerLoan]:
        """Lend enough idle proven nodes of the batch's SKU; they are given back at the end.

        A node alone waits for partners as long as another batch may bring some; at the deadline it has none.
        """
        if len(nodes) == 1:
            with suppress(UnreachableError):
                self._await(nodes, deadline)
        loan = PartnerLoan(self, nodes, deadline, self._take(nodes, ENOUGH - len(nodes)))
        try:
            yield loan
        finally:
            for partner in loan.partners:
                self.add(partner)

    def further(
        self,
        nodes: Sequence[NodeUnderTest],
        held: Sequence[NodeUnderTest],
        wanted: int,
        deadline: Deadline,
        *,
        proven: bool,
    ) -> list[NodeUnderTest]:
        """Return at most `wanted` partners in addition to those that the nodes have (`held`); wait for them while
        another batch may bring some.

        A batch that is `proven` waits for those that run; one that is not waits for proven batches that wait, too.
        While it waits others may take its partners, and it has them back before it goes on: of two batches that wait,
        each with partners that the other has not met, one goes on with those of both.
        """
        if wanted <= 0:
            return []
        here = [*nodes, *held]
        with self._changed:
            for partner in held:
                self.add(partner)
            self._await(here, deadline, {partner.name for partner in held}, proven=proven)
            for partner in held:
                del self._idle[partner.name]
            return self._take(here, wanted)

    def _await(
        self,
        here: Sequence[NodeUnderTest],
        deadline: Deadline,
        returning: Collection[str] = (),
        *,
        proven: bool = False,
    ) -> None:
        """Wait until `returning` are idle, and another node fits or no other batch can bring one."""
        self._count(-1, proven=int(proven))
        try:
            with self._changed:
                while not self._may_go_on(here, returning, proven=proven):
                    deadline.check("waiting for a partner node")
                    self._changed.wait(POLL_S)
        finally:
            self._count(1, proven=-int(proven))

    def _may_go_on(self, here: Sequence[NodeUnderTest], returning: Collection[str], *, proven: bool) -> bool:
        others = self._busy + (0 if proven else self._proven)
        return self._idle.keys() >= set(returning) and (bool(self._fitting(here, 1)) or others <= 0)

    def _take(self, here: Sequence[NodeUnderTest], wanted: int) -> list[NodeUnderTest]:
        with self._changed:
            return [self._idle.pop(name) for name in self._fitting(here, wanted)]

    def _fitting(self, here: Sequence[NodeUnderTest], wanted: int) -> tuple[str, ...]:
        names = {node.name for node in here}
        idle = ((name, node.sku.name) for name, node in sorted(self._idle.items()) if name not in names)
        return choose(idle, {here[0].sku.name: wanted})

    def _count(self, batches: int, proven: int = 0) -> None:
        with self._changed:
            self._busy += batches
            self._proven += proven
            self._changed.notify_all()


class PartnerLoan:
    """The partners of one batch."""

    def __init__(
        self, pool: PartnerPool, nodes: Sequence[NodeUnderTest], deadline: Deadline, partners: Sequence[NodeUnderTest]
    ) -> None:
        self.partners = list(partners)
        self._pool = pool
        self._nodes = nodes
        self._deadline = deadline

    def more(self, *, proven: bool) -> list[NodeUnderTest]:
        """Return further partners; none when none can come, or none came until the deadline.

        They are for nodes that have met all partners and are not decided, or are `proven` and have met too few.
        """
        held, self.partners = self.partners, []  # while the batch waits they are the pool's
        wanted = min(ENOUGH, MOST - len(held))
        try:
            newcomers = self._pool.further(self._nodes, held, wanted, self._deadline, proven=proven)
        except UnreachableError:  # no time is left to measure with anyone
            return []
        self.partners = [*held, *newcomers]
        return newcomers
