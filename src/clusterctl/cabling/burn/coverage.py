"""What a burn has proven so far: each direction of each link over all stages, and the health of the links meanwhile.

A slow link slows the whole flow: all links of its way then show the low rate. A link that carried its full rate in
another stage is cleared. Where one link of a slow way is not cleared, that one is slow; where several are not, further
flows must separate them; where all are, the fault comes and goes.

When a switch goes away, flows through it end or take another way: a stage in which that happens accuses no link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from clusterctl.cabling.burn.routes import DirectedLink
from clusterctl.cabling.burn.verdicts import LinkLoad, LoadVerdict, coverage_from_counters, judge_burn
from clusterctl.cabling.health.findings import FabricLabels
from clusterctl.cabling.health.judge import FabricHealth, judge_health, lost_switches
from clusterctl.cabling.health.symptoms import HealthKind, HealthWindow, Symptom
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fabric and its counters at one moment."""

    fabric: Fabric
    telemetry: Telemetry


MOST_INEXACT = 0.05
"""Share of the time between two readings that reading may take on average: a rate is uncertain by as much."""
UNLOADED = "no stage loaded it"
Way = tuple[DirectedLink, ...]
"""The directed links that a flow loads, in order."""


@dataclass(frozen=True, slots=True)
class StageReading:
    """Two snapshots while the flows of one stage ran, and the ways of the flows."""

    cycle: int
    ways: tuple[Way, ...]
    before: Snapshot
    after: Snapshot


def inexact(first: Telemetry, last: Telemetry, seconds: float) -> str:
    """Return why rates between two readings are too uncertain to judge a link by them; empty where they are not."""
    taken = (first.taken_s + last.taken_s) / 2
    if taken <= MOST_INEXACT * seconds:
        return ""
    return f"reading all counters took {taken:.1f} s of {seconds:.0f} s: no rate is known to {MOST_INEXACT:.0%}"


def window_between(before: Snapshot, after: Snapshot, limits: FabricLimits) -> HealthWindow:
    """Return the window between two snapshots. Raises `ParseError` where their times are unknown or not in order."""
    first, last = before.telemetry.at, after.telemetry.at
    if first is None or last is None or last <= first:
        message = f"the second reading ({last}) is not after the first one ({first})"
        raise ParseError(message, where="counters", remedy="check the controller's clock")
    return HealthWindow(before.telemetry, after.telemetry, (last - first).total_seconds(), limits)


@dataclass(frozen=True, slots=True)
class UnprovenDirection:
    """One direction of a link that the burn did not prove, and why."""

    source: PortName
    target: PortName
    reason: str


@dataclass(frozen=True, slots=True)
class BurnReport:
    """Each direction of each link that the first stage found, and the links' health since then.

    directions  FAIL: slow; WARN: slow at times, or slower than its like; INCONCLUSIVE: no stage loaded it, or it cannot
                be distinguished from other links of a slow way
    at_goal     directions at the goal of the limits or above
    unproven    directions that are not proven, by the names of their ends, each with the reason
    """

    directions: tuple[LoadVerdict, ...]
    at_goal: int
    health: FabricHealth
    unproven: tuple[UnprovenDirection, ...] = ()

    @property
    def loaded(self) -> int:
        """Number of directions that some stage loaded."""
        return sum(one.load.share is not None for one in self.directions)


class Coverage:
    """The stages so far. `adaptive`: the switches route adaptively, so that ways show nothing about links."""

    def __init__(self, limits: FabricLimits, *, adaptive: bool) -> None:
        self._limits = limits
        self._adaptive = adaptive
        self._best: dict[DirectedLink, LoadVerdict] = {}
        self._doubts: dict[DirectedLink, str] = {}
        self.doubt = ""
        """Why a link that the last stage was to load is not proven by it; empty where all are."""
        self._slow_ways: dict[Way, None] = {}
        self._by_cycle: dict[int, set[DirectedLink]] = defaultdict(set)
        self._whole: Fabric | None = None
        self._first: Snapshot | None = None
        self._last: Snapshot | None = None

    def begin(self, fabric: Fabric) -> None:
        """Note the fabric that the burn began with, unless it is known: what goes away later was in it."""
        self._whole = self._whole or fabric

    def add(self, reading: StageReading) -> int:
        """Add a stage; return how many of its flows were slow. Raises `ParseError` as `window_between`."""
        window = window_between(reading.before, reading.after, self._limits)
        found = judge_burn(coverage_from_counters(reading.before.fabric, window), self._limits)
        doubt = inexact(reading.before.telemetry, reading.after.telemetry, window.seconds)
        away = _gone(reading.before.fabric, reading.after.fabric)
        doubts = {_link(one.load): _doubt(one, doubt, away) for one in found.directions}
        doubted = {link: why for link, why in doubts.items() if why}
        planned = {link: doubted[link] for way in reading.ways for link in way if link in doubted}
        self._doubts |= planned
        self.doubt = next(iter(planned.values()), "")
        loaded = {_link(one.load): one for one in found.directions if _link(one.load) not in doubted}
        for link, one in loaded.items():
            self._best[link] = max(self._best.get(link, one), one, key=_share)
        self._by_cycle[reading.cycle] |= loaded.keys()
        self.begin(reading.before.fabric)
        self._first = self._first or reading.before
        self._last = reading.after
        slow = {link for link, one in loaded.items() if one.verdict is Verdict.FAIL}
        ways = [] if self._adaptive else [way for way in reading.ways if not slow.isdisjoint(way)]
        self._slow_ways |= dict.fromkeys(ways)
        return len(ways)

    def loaded_in(self, cycle: int) -> frozenset[DirectedLink]:
        """Return the directions that a stage of this cycle loaded."""
        return frozenset(self._by_cycle[cycle])

    @property
    def unseparated(self) -> frozenset[DirectedLink]:
        """Directions of slow ways of which it is not known yet which one is slow."""
        left = (self._uncleared(way) for way in self._slow_ways)
        named = self._named
        return frozenset(link for links in left if len(links) > 1 and named.isdisjoint(links) for link in links)

    @property
    def _named(self) -> frozenset[DirectedLink]:
        """Directions that are slow: the only one of a slow way that no stage has cleared."""
        return frozenset(links[0] for links in map(self._uncleared, self._slow_ways) if len(links) == 1)

    def _uncleared(self, way: Way) -> tuple[DirectedLink, ...]:
        """Return the links of the way that carried their full rate in no stage."""
        return tuple(link for link in way if link not in self._best or not self._best[link].verdict.admits)

    @property
    def fabric(self) -> Fabric | None:
        """The fabric that the burn began with; None before that."""
        return self._whole

    @property
    def latest(self) -> Fabric | None:
        """The fabric as the last stage found it; None before the first one."""
        return self._last.fabric if self._last is not None else None

    def report(
        self,
        labels: FabricLabels,
        modules: Mapping[PortId, Transceiver] = MappingProxyType({}),
        within: Collection[DirectedLink] | None = None,
    ) -> BurnReport | None:
        """Return what is proven so far; None before the first stage. `modules`: as an earlier reading had them.

        within  the directions that the burn is about; None: all
        """
        if self._first is None or self._last is None or self._whole is None:
            return None
        first, last = _part(self._whole, within), _part(self._last.fabric, within)
        named, at_times, away = self._named, self._slow_at_times(), _gone(first, last)
        directions = tuple(
            _of_switch(DirectedLink(*ends), link.gbps, away)
            or self._verdict(DirectedLink(*ends), link.gbps, named, at_times)
            for link in first.cables()
            for ends in ((link.a, link.b), (link.b, link.a))
            if within is None or DirectedLink(*ends) in within
        )
        goal = self._limits.value("burn_goal")
        window = replace(window_between(self._first, self._last, self._limits), modules=modules)
        health = judge_health(last, window, labels, first, _slow(directions, labels))
        unproven = tuple(
            UnprovenDirection(labels.name(one.load.source), labels.name(one.load.target), one.why)
            for one in directions
            if not _is_known(one)
        )
        return BurnReport(directions, sum((one.load.share or 0.0) >= goal for one in directions), health, unproven)

    def _slow_at_times(self) -> frozenset[DirectedLink]:
        """Return the directions of slow ways of which each has carried its full rate in some other stage."""
        return frozenset(link for way in self._slow_ways if not self._uncleared(way) for link in way)

    def _verdict(
        self, link: DirectedLink, gbps: float, named: Collection[DirectedLink], at_times: Collection[DirectedLink]
    ) -> LoadVerdict:
        best = self._best.get(link)
        if best is None:
            why = self._doubts.get(link, UNLOADED)
            return LoadVerdict(LinkLoad(link.source, link.target, gbps, None), Verdict.INCONCLUSIVE, why)
        if best.verdict is Verdict.FAIL and not self._adaptive and link not in named:
            why = f"{best.why}; so do other links of the same flows, and one of them is slow"
            return LoadVerdict(best.load, Verdict.INCONCLUSIVE, why)
        if best.verdict.admits and link in at_times:
            why = "its full rate in one stage and less in another, and so did all links of that flow"
            return LoadVerdict(best.load, Verdict.WARN, why)
        return best


def _gone(before: Fabric, after: Fabric) -> Mapping[Guid, str]:
    """Return the switches that went away in between, each with that in words."""
    return {
        guid: f"the switch {before.devices[guid].description or guid} went away"
        for guid in lost_switches(before, after)
    }


def _of_switch(link: DirectedLink, gbps: float, away: Mapping[Guid, str]) -> LoadVerdict | None:
    """Return that the link is not proven, where one of its switches went away; None for others."""
    reason = away.get(link.source.guid) or away.get(link.target.guid)
    return LoadVerdict(LinkLoad(link.source, link.target, gbps, None), Verdict.INCONCLUSIVE, reason) if reason else None


def _doubt(one: LoadVerdict, doubt: str, away: Mapping[Guid, str]) -> str:
    """Return why a stage proves nothing about the direction; empty where it does. `doubt`: about the whole stage."""
    if doubt or not _is_known(one):
        return doubt or one.why
    own = away.get(one.load.source.guid) or away.get(one.load.target.guid)
    if own:
        return own
    return "" if one.verdict is Verdict.PASS else next((f"{why} while it was loaded" for why in away.values()), "")


def _part(fabric: Fabric, within: Collection[DirectedLink] | None) -> Fabric:
    """Return the fabric with those of its links only that have a direction in `within`."""
    if within is None:
        return fabric
    links = (
        link
        for link in fabric.links
        if not {DirectedLink(link.a, link.b), DirectedLink(link.b, link.a)}.isdisjoint(within)
    )
    return replace(fabric, links=tuple(links))


def _is_known(one: LoadVerdict) -> bool:
    return one.verdict is not Verdict.INCONCLUSIVE


def _link(load: LinkLoad) -> DirectedLink:
    return DirectedLink(load.source, load.target)


def _slow(directions: Sequence[LoadVerdict], labels: FabricLabels) -> Mapping[frozenset[PortId], tuple[Symptom, ...]]:
    """Return the symptom of each link of which a direction did not carry its load as it should."""
    found: dict[frozenset[PortId], list[Symptom]] = defaultdict(list)
    for one in directions:
        if one.verdict in (Verdict.FAIL, Verdict.WARN):
            what = f"from {labels.plain(one.load.source)} it carried {one.why}"
            found[frozenset((one.load.source, one.load.target))].append(Symptom(HealthKind.SLOW, one.verdict, what))
    return {ends: tuple(symptoms) for ends, symptoms in found.items()}


def _share(direction: LoadVerdict) -> float:
    return direction.load.share or 0.0
