"""Recorded counters judged: the health of links between readings, and the load that a burn put on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from clusterctl.cabling.burn.verdicts import coverage_from_counters, judge_burn
from clusterctl.cabling.health.findings import PortRate, fabric_labels, port_rates
from clusterctl.cabling.health.judge import FabricHealth, judge_health
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.contents import wiring_plan
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Verdict
from clusterctl.operations.context import SiteContext
from clusterctl.operations.documents import as_usage
from clusterctl.operations.fabric_files import PlanFiles, fabric_in, limits_for, limits_named, moments, plan_in, reading
from clusterctl.steps.cable.link_health import judge_period


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingsRequest:
    """Two readings of counters.

    before, after  files: ibqueryerrors, perfquery -x or db_csv
    fabric         the topology; None where the readings hold it
    plan           a wiring plan, for racks and labels
    seconds        between the readings; None: by the times in them
    limits         fabric limits by name, or a file
    """

    before: Path
    after: Path
    fabric: Path | None = None
    plan: PlanFiles = field(default_factory=PlanFiles)
    seconds: float | None = None
    limits: str = "ndr"


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsUsed:
    """Which limits judged, by name and digest."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthResult:
    """The verdict, and the data rate of each port."""

    health: FabricHealth
    rates: tuple[PortRate, ...]
    limits: LimitsUsed

    @property
    def exit_code(self) -> int:
        """0: every link is proven healthy."""
        return 0 if self.health.verdict.admits and not self.health.stop else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualShare:
    """Percent of the rate that most directions of one kind reached."""

    gbps: float
    both_ways: bool
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionLoad:
    """One direction of a link. `share`: percent of its rate that passed, None: not measured; `why`: it is no pass."""

    source: str
    target: str
    share: float | None
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageResult:
    """How many directions of links were loaded, and how many reached the goal (percent of their rate)."""

    verdict: Verdict
    loaded: int
    at_goal: int
    goal: float
    goal_text: str
    seconds: float
    usual: tuple[UsualShare, ...]
    directions: tuple[DirectionLoad, ...]
    limits: LimitsUsed

    @property
    def exit_code(self) -> int:
        """0: every direction was loaded and reached its limit."""
        return 0 if self.verdict.admits else 1


def run_health(request: ReadingsRequest) -> HealthResult:
    """Judge links by what their counters gathered between the readings."""
    limits, given = limits_named(request.limits), fabric_in(request.fabric) if request.fabric else None
    with as_usage():
        earlier, first = reading(request.before, given)
        later, last = reading(request.after, given)
    planned = plan_in(request.plan) if request.plan.files else None
    seconds = moments((request.before, request.after), (first, last), request.seconds)[-1]
    window, labels = HealthWindow(first, last, seconds, limits), fabric_labels(later, planned)
    return HealthResult(
        health=judge_health(later, window, labels, earlier),
        rates=tuple(port_rates(later, window, labels)),
        limits=LimitsUsed(name=limits.name, digest=limits.digest),
    )


def run_history(context: SiteContext, seconds: float, limits_name: str) -> HealthResult:
    """Judge the links of the site's fabric over the readings of the last `seconds` that the journal has.

    Raises `UsageError` for fewer than two readings.
    """
    limits, plan = limits_for(context.site, limits_name), wiring_plan(context.site)
    found = judge_period(context.journal, None, limits, plan, CLOCK.now() - timedelta(seconds=seconds))
    if found is None:
        raise UsageError(
            f"the journal has fewer than two readings of counters of the last {seconds / 3600:g} h",
            where="--since",
            remedy="run clusterctl cable or a night, which read them, or name a longer time",
        )
    used = LimitsUsed(name=limits.name, digest=limits.digest)
    return HealthResult(health=found.health, rates=found.rates, limits=used)


def run_coverage(request: ReadingsRequest) -> CoverageResult:
    """Judge each direction of each link by what passed it between the readings, during a burn."""
    limits, given = limits_named(request.limits), fabric_in(request.fabric) if request.fabric else None
    with as_usage():
        first = reading(request.before, given)[1]
        seen, last = reading(request.after, given)
    seconds = moments((request.before, request.after), (first, last), request.seconds)[-1]
    found = judge_burn(coverage_from_counters(seen, HealthWindow(first, last, seconds, limits)), limits)
    label = fabric_labels(seen, None).plain
    return CoverageResult(
        verdict=found.verdict,
        loaded=found.loaded,
        at_goal=found.at_goal,
        goal=limits.value("burn_goal"),
        goal_text=str(limits["burn_goal"]),
        seconds=seconds,
        usual=tuple(UsualShare(gbps=of.gbps, both_ways=of.both_ways, share=n) for of, n in found.usual.items()),
        directions=tuple(
            DirectionLoad(
                source=label(one.load.source),
                target=label(one.load.target),
                share=one.load.share,
                verdict=one.verdict,
                why=one.why,
            )
            for one in found.directions
        ),
        limits=LimitsUsed(name=limits.name, digest=limits.digest),
    )
