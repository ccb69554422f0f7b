"""Finds a flow across a given link: which host can send to which, so that the tables lead the packets over it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from clusterctl.cabling.places import Places
from clusterctl.cabling.reachable import Reachable
from clusterctl.cabling.routes import NOWHERE, Endpoint, Routes


@dataclass(frozen=True, slots=True)
class Flow:
    """`way`: numbers of the directed links that it loads."""

    source: Endpoint
    target: Endpoint
    way: tuple[int, ...]


@dataclass(slots=True)
class FlowSearch:
    """Over one set of routes; `reachable` is theirs."""

    routes: Routes
    places: Places
    reachable: Reachable
    _senders: dict[int, Endpoint] = field(init=False)
    _receivers: dict[int, Endpoint] = field(init=False)
    _rail: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        ends = self.routes.endpoints
        self._senders = {end.out: end for end in ends}
        self._receivers = {end.into: end for end in ends}
        self._rail = {end.out: number for number, rail in enumerate(self.places.rails) for end in rail}

    def across(self, link: int, busy: Collection[int], wanted: Collection[int], tries: int | None) -> Flow | None:
        """A flow between two hosts that crosses `link` and no link in `busy`, preferring those in `wanted` on its way.

        After `tries` destinations it gives up; with None it tries all, so that None as an answer is proof.
        """
        if link in busy:
            return None
        for target in self._targets(link):
            if target.into in busy:
                continue
            if tries is not None:
                tries -= 1
                if tries < 0:
                    return None
            flow = self._to(target, link, busy, wanted)
            if flow is not None:
                return flow
        return None

    def _targets(self, link: int) -> Iterator[Endpoint]:
        """Whom packets on the link may be meant for."""
        if link in self._receivers:
            yield self._receivers[link]
        elif link in self._senders:
            rail = self._rail[link]
            yield from self.places.rails[rail]
            for number, others in enumerate(self.places.rails):
                if number != rail:
                    yield from others
        else:
            yield from self.reachable.get(link, ())

    def _to(self, target: Endpoint, link: int, busy: Collection[int], wanted: Collection[int]) -> Flow | None:
        source = self._senders.get(link)
        switch = source.leaf if source else self.routes.tails[link]
        onward = self.routes.onward(switch, target)
        if not onward or not (source or onward[0] == link) or any(step in busy for step in onward):
            return None
        if source is not None:
            return None if source.host == target.host else Flow(source, target, (link, *onward))
        return self._from_any(target, switch, onward, busy, wanted)

    def _from_any(
        self,
        target: Endpoint,
        switch: int,
        onward: tuple[int, ...],
        busy: Collection[int],
        wanted: Collection[int],
    ) -> Flow | None:
        """Upstream from the switch to a host. Links that lead to the target through it form a tree, so this ends."""
        routes, lid = self.routes, target.lid
        waiting = [(switch, onward)]
        while waiting:
            switch, way = waiting.pop()
            for entry in sorted(routes.entries[switch], key=lambda step: step in wanted):
                if entry in busy:
                    continue
                tail = routes.tails[entry]
                if tail != NOWHERE:
                    if routes.exits[tail][routes.tables[tail][lid]] == entry:
                        waiting.append((tail, (entry, *way)))
                    continue
                source = self._senders.get(entry)
                if source is not None and source.host != target.host:
                    return Flow(source, target, (entry, *way))
        return None
