"""What a burn really loaded: each direction of each cable, from port counters read before and after.

Under adaptive routing switches choose among ports by themselves, so that tables do not show which links a flow takes;
the counters do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from clusterctl.cabling.health.counters import throughput_gbps
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.topology import Fabric, Link, PortId
from clusterctl.fleet.finding import Verdict, worst


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """One direction of a cable. `share`: its mean rate over the interval in % of the link's nominal one; None where
    neither end was read twice, or counted without a break.
    """

    source: PortId
    target: PortId
    gbps: float
    share: float | None


def coverage_from_counters(fabric: Fabric, window: HealthWindow) -> tuple[LinkLoad, ...]:
    """Return both directions of every cable, one after the other."""
    return tuple(load for link in fabric.cables() for load in _both(link, window))


def _both(link: Link, window: HealthWindow) -> Iterator[LinkLoad]:
    """Yield the load of both directions: the sender's counter, the receiver's where that was not read."""
    rates = {port: throughput_gbps(window.growth(port), window.seconds) for port in (link.a, link.b)}
    for source, target in ((link.a, link.b), (link.b, link.a)):
        sent, received = rates[source][0], rates[target][1]
        known = sent if sent is not None else received
        yield LinkLoad(source, target, link.gbps, None if known is None else 100 * known / link.gbps)


MOST = 110.0
"""% of a direction's rate: counters that show more are wrong, or the times of the two readings are."""
FLEET_MIN = 20
"""Directions of a class (rate, one way or both ways) below which the fleet is no measure."""
_DEVIATION = 1.4826
"""Standard deviations in a median absolute deviation, for a normal distribution."""
_NARROWEST = 0.5
"""% of the nominal rate: a fleet with links that agree more closely is taken to agree only this closely."""


@dataclass(frozen=True, slots=True)
class Class:
    """Directions that are comparable: of links of one nominal rate, with or without load the other way."""

    gbps: float
    both_ways: bool


@dataclass(frozen=True, slots=True)
class LoadVerdict:
    load: LinkLoad
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class BurnVerdict:
    """`loaded`, `at_goal`: numbers of directions. `usual`: median share of each class that is large enough."""

    directions: tuple[LoadVerdict, ...]
    loaded: int
    at_goal: int
    usual: Mapping[Class, float]

    @property
    def verdict(self) -> Verdict:
        return worst(one.verdict for one in self.directions)


def judge_burn(loads: Sequence[LinkLoad], limits: FabricLimits) -> BurnVerdict:
    """Return the verdict. `loads`: as `coverage_from_counters` returns them, both directions of a link in turn."""
    idle_below = limits.value("burn_loaded_min")
    classes = _classes(loads, idle_below)
    shares: dict[Class, list[float]] = defaultdict(list)
    for load, of in classes.items():
        shares[of].append(load.share or 0.0)
    usual = {of: median(found) for of, found in shares.items() if len(found) >= FLEET_MIN}
    floors = {
        of: middle - limits.value("burn_deviations_max") * _deviation(shares[of], middle)
        for of, middle in usual.items()
    }
    goal = limits.value("burn_goal")
    return BurnVerdict(
        directions=tuple(_judge(load, classes.get(load), floors, usual, limits) for load in loads),
        loaded=len(classes),
        at_goal=sum((load.share or 0.0) >= goal for load in classes),
        usual=usual,
    )


def _classes(loads: Sequence[LinkLoad], idle_below: float) -> dict[LinkLoad, Class]:
    """Return the class of each direction that was loaded."""
    busy = {(load.source, load.target) for load in loads if load.share is not None and load.share >= idle_below}
    return {
        load: Class(load.gbps, (load.target, load.source) in busy)
        for load in loads
        if (load.source, load.target) in busy
    }


def _deviation(shares: Iterable[float], middle: float) -> float:
    """Return a robust deviation: half of the links may be bad without moving it."""
    return max(_NARROWEST, _DEVIATION * median(abs(share - middle) for share in shares))


def _judge(
    load: LinkLoad,
    of: Class | None,
    floors: Mapping[Class, float],
    usual: Mapping[Class, float],
    limits: FabricLimits,
) -> LoadVerdict:
    if load.share is None:
        return LoadVerdict(load, Verdict.INCONCLUSIVE, "its counters were not read twice without a break")
    if load.share > MOST:
        why = f"its counters show {load.share:.1f} % of its rate, more than a link can carry"
        return LoadVerdict(load, Verdict.INCONCLUSIVE, why)
    if of is None:
        return LoadVerdict(load, Verdict.INCONCLUSIVE, f"no flow went over it ({load.share:.1f} % of its rate)")
    limit = limits["burn_both_ways_min" if of.both_ways else "burn_one_way_min"]
    if load.share < limit.value:
        usual_share = f", the usual link {usual[of]:.1f} %" if of in usual else ""
        return LoadVerdict(load, Verdict.FAIL, f"{load.share:.1f} % of its rate, the limit is {limit}{usual_share}")
    if of in floors and load.share < floors[of]:
        why = f"{load.share:.1f} % of its rate is within the limit, but the usual link has {usual[of]:.1f} %"
        return LoadVerdict(load, Verdict.WARN, why)
    return LoadVerdict(load, Verdict.PASS)
