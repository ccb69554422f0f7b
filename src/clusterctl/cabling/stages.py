"""Stages of a fabric burn: flows between hosts' adapters that load every directed link, each link with one flow.

A stage begins with a shift: each adapter sends to the adapter of its rail so many hosts further on. On intact fat-tree
tables one shift loads every link in both directions. Flows that would share a link are left out of the stage, and flows
that cross links not loaded yet take their places, until every link that any route uses has had its turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from clusterctl.cabling.flow_search import Flow, FlowSearch
from clusterctl.cabling.places import Places
from clusterctl.cabling.reachable import reachable_links
from clusterctl.cabling.routes import Endpoint, Routes

MAX_SHIFTS = 64
"""Shifts that are tried for the first stage. Those by whole leaves and pods come first; they are the good ones."""
_TRIES = 24
"""Destinations that are tried for a link before it is left for the next stage; in an empty stage all are tried."""


@dataclass(frozen=True, slots=True)
class Stage:
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
    stages: tuple[Stage, ...]
    unreached: frozenset[int]


def choose_stages(routes: Routes, places: Places) -> Stages:
    shift, crowd = _best_shift(routes, places)
    reachable = reachable_links(routes)
    search = FlowSearch(routes, places, reachable)
    left = dict.fromkeys(sorted(reachable))
    stages: list[Stage] = []
    seeds = shift.flows
    while left:
        draft = _Draft(search, left)
        draft.seed(seeds)
        draft.fill()
        if not draft.flows:
            break
        stages.append(Stage(tuple(draft.flows)))
        seeds = ()
    loaded = frozenset[int]().union(*(stage.links for stage in stages))
    return Stages(shift, crowd, tuple(stages), frozenset(range(len(routes.links))) - loaded)


def _best_shift(routes: Routes, places: Places) -> tuple[Shift, int]:
    """The shift that gives most links a flow of their own, of equals the one tried first; and `Stages.crowd`."""
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


def _shifts(places: Places) -> Iterator[int]:
    """By a quarter, half, three quarters of the hosts, then by whole leaves, then by ever more hosts."""
    count = len(places.hosts)
    on_leaf = max(1, sum(host.leaf == places.hosts[0].leaf for host in places.hosts)) if count else 1
    order = (count // 4, count // 2, count - count // 4, *range(on_leaf, count, on_leaf), *range(1, count))
    tried = dict.fromkeys(hosts for hosts in order if 0 < hosts < count)
    yield from list(tried)[:MAX_SHIFTS]


def _try(routes: Routes, places: Places, hosts: int) -> Shift:
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
        """Take each flow whose links are all free."""
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
