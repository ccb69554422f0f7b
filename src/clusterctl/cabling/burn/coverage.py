"""What a burn has proven so far: each direction of each link over all stages, and the health of the links meanwhile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.burn.routes import DirectedLink
from clusterctl.cabling.burn.verdicts import Load, LoadVerdict, coverage_from_counters, judge_burn
from clusterctl.cabling.health.findings import FabricLabels
from clusterctl.cabling.health.judge import Health, judge_health
from clusterctl.cabling.health.symptoms import HealthKind, Symptom, Window
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.finding import Verdict


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fabric and its counters at one moment."""

    fabric: Fabric
    telemetry: Telemetry


@dataclass(frozen=True, slots=True)
class StageReading:
    """Two snapshots while the flows of one stage ran."""

    cycle: int
    before: Snapshot
    after: Snapshot

    def window(self, limits: FabricLimits) -> Window:
        """Return the window between them. Raises `ValueError` where their times do not follow each other."""
        return window_between(self.before, self.after, limits)


def window_between(before: Snapshot, after: Snapshot, limits: FabricLimits) -> Window:
    """Return the window between two snapshots. Raises `ValueError` where their times are unknown or not in order."""
    first, last = before.telemetry.at, after.telemetry.at
    if first is None or last is None or last <= first:
        raise ValueError(f"the second reading ({last}) is not after the first one ({first})")
    return Window(before.telemetry, after.telemetry, (last - first).total_seconds(), limits)


@dataclass(frozen=True, slots=True)
class BurnReport:
    """Each direction of each link that the last stage found, and the links' health since the first stage.

    directions  the worst of the stages that loaded it; under adaptive routing, where a link may have carried a part of
                a flow, the best. INCONCLUSIVE where no stage loaded it
    at_goal     directions at the goal of the limits or above
    """

    directions: tuple[LoadVerdict, ...]
    at_goal: int
    health: Health

    @property
    def loaded(self) -> int:
        """Number of directions that some stage loaded."""
        return sum(one.verdict is not Verdict.INCONCLUSIVE for one in self.directions)


class Coverage:
    """The stages so far."""

    def __init__(self, limits: FabricLimits, *, adaptive: bool) -> None:
        self._limits = limits
        self._adaptive = adaptive
        self._verdicts: dict[DirectedLink, LoadVerdict] = {}
        self._by_cycle: dict[int, set[DirectedLink]] = defaultdict(set)
        self._first: Snapshot | None = None
        self._last: Snapshot | None = None

    def add(self, reading: StageReading) -> int:
        """Add a stage; return how many directions it loaded. Raises `ValueError` as `StageReading.window`."""
        found = judge_burn(coverage_from_counters(reading.before.fabric, reading.window(self._limits)), self._limits)
        loaded = [one for one in found.directions if one.verdict is not Verdict.INCONCLUSIVE]
        for one in loaded:
            link = _link(one.load)
            known = self._verdicts.get(link)
            if known is None or self._replaces(one, known):
                self._verdicts[link] = one
            self._by_cycle[reading.cycle].add(link)
        self._first = self._first or reading.before
        self._last = reading.after
        return len(loaded)

    def _replaces(self, new: LoadVerdict, known: LoadVerdict) -> bool:
        if self._adaptive:
            return (new.load.share or 0.0) > (known.load.share or 0.0)
        return (new.verdict.rank, -(new.load.share or 0.0)) > (known.verdict.rank, -(known.load.share or 0.0))

    def loaded_in(self, cycle: int) -> frozenset[DirectedLink]:
        """Return the directions that a stage of this cycle loaded."""
        return frozenset(self._by_cycle[cycle])

    @property
    def fabric(self) -> Fabric | None:
        """The fabric as the first stage found it; None before it."""
        return self._first.fabric if self._first is not None else None

    def report(self, labels: FabricLabels) -> BurnReport | None:
        """Return what is proven so far; None before the first stage."""
        if self._first is None or self._last is None:
            return None
        directions = tuple(
            self._verdict_of(DirectedLink(*ends), link.gbps)
            for link in self._first.fabric.cables()
            for ends in ((link.a, link.b), (link.b, link.a))
        )
        goal = self._limits.value("burn_goal")
        window = window_between(self._first, self._last, self._limits)
        health = judge_health(self._last.fabric, window, labels, self._first.fabric, _slow(directions, labels))
        return BurnReport(directions, sum((one.load.share or 0.0) >= goal for one in directions), health)

    def _verdict_of(self, link: DirectedLink, gbps: float) -> LoadVerdict:
        unloaded = Load(link.source, link.target, gbps, None)
        return self._verdicts.get(link) or LoadVerdict(unloaded, Verdict.INCONCLUSIVE, "no stage loaded it")


def _link(load: Load) -> DirectedLink:
    return DirectedLink(load.source, load.target)


def _slow(directions: Sequence[LoadVerdict], labels: FabricLabels) -> Mapping[frozenset[PortId], tuple[Symptom, ...]]:
    """Return the symptom of each link of which a direction did not carry its load as it should."""
    found: dict[frozenset[PortId], list[Symptom]] = defaultdict(list)
    for one in directions:
        if one.verdict in (Verdict.FAIL, Verdict.WARN):
            what = f"from {labels.plain(one.load.source)} it carried {one.why}"
            found[frozenset((one.load.source, one.load.target))].append(Symptom(HealthKind.SLOW, one.verdict, what))
    return {ends: tuple(symptoms) for ends, symptoms in found.items()}
