"""Finds a flow across a given link: which host can send to which, so that the tables lead the packets over it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from clusterctl.cabling.burn.layout import HostLayout
from clusterctl.cabling.burn.routes import NOWHERE, Endpoint, Reachable, Routes, reachable_links


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
    places: HostLayout
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
        """Return a flow between two hosts that crosses `link` and no link in `busy`; links of `wanted` are preferred.

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
        """Yield the destinations of packets on the link."""
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
        """Search upstream from the switch for a host. Links that lead to the target through it form a tree."""
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


MAX_SHIFTS = 64
"""Shifts that are tried for the first stage. Those by whole leaves and pods come first; they are the good ones."""
_TRIES = 24
"""Destinations that are tried for a link before it is left for the next stage; in an empty stage all are tried."""


@dataclass(frozen=True, slots=True)
class BurnStage:
    """Flows that run at the same time, no two of them on one directed link."""

    flows: tuple[Flow, ...]

    @property
    def links(self) -> frozenset[int]:
        """Numbers of the directed links that it loads."""
        return frozenset(link for flow in self.flows for link in flow.way)


@dataclass(frozen=True, slots=True)
class Shift:
    """What a whole shift by `hosts` does, no flow left out: `worst` is the number of flows on its fullest link, `alone`
    the number of links with exactly one; `lost` are flows that never arrive.
    """

    hosts: int
    flows: tuple[Flow, ...]
    worst: int
    alone: int
    lost: tuple[tuple[Endpoint, Endpoint], ...]


@dataclass(frozen=True, slots=True)
class Stages:
    """`shift` is what the first stage comes from. `crowd`: flows on the fullest link under the best of those shifts
    that lead every flow to another leaf. `unreached`: numbers of the directed links that no route crosses.
    """

    shift: Shift
    crowd: int
    stages: tuple[BurnStage, ...]
    unreached: frozenset[int]


def choose_stages(
    routes: Routes, places: HostLayout, done: frozenset[int] = frozenset(), wanted: frozenset[int] | None = None
) -> Stages:
    """Return the stages that load every link, or every `wanted` one where they are named, but not those `done`."""
    shift, crowd = _best_shift(routes, places)
    reachable = reachable_links(routes)
    search = FlowSearch(routes, places, reachable)
    missing = reachable.keys() - done
    left = dict.fromkeys(sorted(missing if wanted is None else missing & wanted))
    stages: list[BurnStage] = []
    seeds = tuple(flow for flow in shift.flows if not left.keys().isdisjoint(flow.way))
    while left:
        draft = _Draft(search, left)
        draft.seed(seeds)
        draft.fill()
        if not draft.flows:
            break
        stages.append(BurnStage(tuple(draft.flows)))
        seeds = ()
    loaded = frozenset[int]().union(*(stage.links for stage in stages))
    asked = frozenset(range(len(routes.links))) if wanted is None else wanted
    return Stages(shift, crowd, tuple(stages), asked - loaded - done)


def separating_stage(routes: Routes, places: HostLayout, suspects: frozenset[int]) -> BurnStage:
    """Return flows that each cross one of the suspected links and none of the others, as far as there are such ways."""
    search = FlowSearch(routes, places, reachable_links(routes))
    flows: list[Flow] = []
    busy: set[int] = set()
    for link in sorted(suspects):
        flow = search.across(link, busy | (suspects - {link}), (), None)
        if flow is not None:
            flows.append(flow)
            busy.update(flow.way)
    return BurnStage(tuple(flows))


def _best_shift(routes: Routes, places: HostLayout) -> tuple[Shift, int]:
    """Return the shift that gives most links a flow of their own, of equals the first; and `Stages.crowd`."""
    best = Shift(0, (), 0, 0, ())
    crowds = []
    for hosts in _shifts(places):
        tried = _try(routes, places, hosts)
        if tried.flows and all(flow.source.leaf != flow.target.leaf for flow in tried.flows):
            crowds.append(tried.worst)
        if not best.hosts or (tried.alone, -tried.worst) > (best.alone, -best.worst):
            best = tried
        if best.alone == len(routes.links):
            break
    return best, min(crowds, default=best.worst)


def _shifts(places: HostLayout) -> Iterator[int]:
    """Yield shifts by a quarter, half, three quarters of the hosts, then by whole leaves, then by ever more hosts."""
    count = len(places.hosts)
    on_leaf = max(1, sum(host.leaf == places.hosts[0].leaf for host in places.hosts)) if count else 1
    order = (count // 4, count // 2, count - count // 4, *range(on_leaf, count, on_leaf), *range(1, count))
    tried = dict.fromkeys(hosts for hosts in order if 0 < hosts < count)
    yield from list(tried)[:MAX_SHIFTS]


def _try(routes: Routes, places: HostLayout, hosts: int) -> Shift:
    flows, lost = [], []
    load = [0] * len(routes.links)
    for rail in places.rails:
        for index, source in enumerate(rail):
            target = rail[(index + hosts) % len(rail)]
            if source.host == target.host:
                continue
            way = routes.way(source, target)
            if not way:
                lost.append((source, target))
                continue
            flows.append(Flow(source, target, way))
            for link in way:
                load[link] += 1
    return Shift(hosts, tuple(flows), max(load, default=0), load.count(1), tuple(lost))


@dataclass(slots=True)
class _Draft:
    """A stage in the making. `left`: links that no stage has loaded yet; what this one settles is taken out."""

    search: FlowSearch
    left: dict[int, None]
    flows: list[Flow] = field(default_factory=list)
    busy: set[int] = field(default_factory=set)

    def seed(self, flows: tuple[Flow, ...]) -> None:
        """Take each flow that has only free links."""
        for flow in flows:
            if self.busy.isdisjoint(flow.way):
                self._take(flow)

    def fill(self) -> None:
        """Add flows across links that are left, as many as fit."""
        for link in list(self.left):
            if link in self.left:
                flow = self.search.across(link, self.busy, self.left, _TRIES if self.flows else None)
                if flow is not None:
                    self._take(flow)

    def _take(self, flow: Flow) -> None:
        self.flows.append(flow)
        self.busy.update(flow.way)
        for link in flow.way:
            self.left.pop(link, None)
