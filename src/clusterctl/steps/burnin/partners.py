"""Proven nodes that a small batch is measured beside: lent to one batch at a time, and nothing is reported of them."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from clusterctl.ports import Deadline
from clusterctl.steps.burnin.node_under_test import NodeUnderTest

ENOUGH = 4
"""A batch smaller than this is given company, as far as there is any."""
MOST = 2 * ENOUGH
"""So many mates at most are lent to one batch."""
LOOK_S = 0.5


class PartnerPool:
    """Thread-safe: batches of one step run side by side."""

    def __init__(self) -> None:
        self._idle: dict[str, NodeUnderTest] = {}
        self._changed = threading.Condition()
        self._busy = 0
        self._proven = 0

    @contextmanager
    def batch(self) -> Iterator[None]:
        """While a batch runs, its nodes may still become company for those who have none."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    def add(self, guest: NodeUnderTest) -> None:
        """The node is proven: it may be measured with from now on."""
        with self._changed:
            self._idle[guest.node.name] = replace(guest, findings=[], evidence={})
            self._changed.notify_all()

    @contextmanager
    def lent(self, guests: Sequence[NodeUnderTest], deadline: Deadline) -> Iterator[PartnerLoan]:
        """Enough idle proven nodes of the guests' SKU to measure them with; given back at the end.

        A guest alone waits for company as long as another batch may bring some.
        """
        if len(guests) == 1:
            self._await(guests, deadline)
        lent = PartnerLoan(self, guests, deadline, self._take(guests, ENOUGH - len(guests)))
        try:
            yield lent
        finally:
            for mate in lent.mates:
                self.add(mate)

    def further(
        self,
        guests: Sequence[NodeUnderTest],
        mates: Sequence[NodeUnderTest],
        wanted: int,
        deadline: Deadline,
        *,
        proven: bool,
    ) -> list[NodeUnderTest]:
        """At most `wanted` idle nodes beside the guests and their mates; waited for while another batch may bring some.

        A batch that is `proven` waits for those that run; one that is not waits for the proven ones that wait, too.
        While it waits others may take its mates, and it has them back before it goes on: of two batches that wait, each
        with mates that the other has not met, one goes on with those of both.
        """
        if wanted <= 0:
            return []
        with self._changed:
            for mate in mates:
                self.add(mate)
            self._await([*guests, *mates], deadline, {mate.node.name for mate in mates}, proven=proven)
            for mate in mates:
                del self._idle[mate.node.name]
            return self._take([*guests, *mates], wanted)

    def _await(
        self, here: Sequence[NodeUnderTest], deadline: Deadline, mine: Collection[str] = (), *, proven: bool = False
    ) -> None:
        self._count(-1, proven=int(proven))
        try:
            with self._changed:
                while not self._may_go_on(here, mine, proven=proven):
                    deadline.check("waiting for somebody to measure with")
                    self._changed.wait(LOOK_S)
        finally:
            self._count(1, proven=-int(proven))

    def _may_go_on(self, here: Sequence[NodeUnderTest], mine: Collection[str], *, proven: bool) -> bool:
        others = self._busy + (0 if proven else self._proven)
        return self._idle.keys() >= set(mine) and (bool(self._fitting(here)) or others <= 0)

    def _take(self, here: Sequence[NodeUnderTest], wanted: int) -> list[NodeUnderTest]:
        with self._changed:
            return [self._idle.pop(name) for name in self._fitting(here)[: max(0, wanted)]]

    def _fitting(self, guests: Sequence[NodeUnderTest]) -> list[str]:
        here = {guest.node.name for guest in guests}
        sku = guests[0].kind.sku.name
        return [n for n, mate in sorted(self._idle.items()) if n not in here and mate.kind.sku.name == sku]

    def _count(self, batches: int, proven: int = 0) -> None:
        with self._changed:
            self._busy += batches
            self._proven += proven
            self._changed.notify_all()


class PartnerLoan:
    """The mates of one batch."""

    def __init__(
        self, company: PartnerPool, guests: Sequence[NodeUnderTest], deadline: Deadline, mates: Sequence[NodeUnderTest]
    ) -> None:
        self.mates = list(mates)
        self._company = company
        self._guests = guests
        self._deadline = deadline

    def more(self, *, proven: bool) -> list[NodeUnderTest]:
        """Further mates, for guests that have met all who are there and are not decided, or are `proven` and have met
        too few; none when none can come.
        """
        had, self.mates = self.mates, []  # while it waits they are the company's
        wanted = min(ENOUGH, MOST - len(had))
        newcomers = self._company.further(self._guests, had, wanted, self._deadline, proven=proven)
        self.mates = [*had, *newcomers]
        return newcomers
