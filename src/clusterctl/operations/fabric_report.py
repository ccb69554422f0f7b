"""A fabric judged for its report: cables against the plan, and links by readings of their counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clusterctl.cabling.explain.verify import CablingVerification, verify
from clusterctl.cabling.health.findings import FabricLabels, fabric_labels
from clusterctl.cabling.health.judge import FabricHealth, judge_health
from clusterctl.cabling.health.symptoms import HealthWindow
from clusterctl.cabling.infer.plan import verify_unplanned
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.operations.documents import as_usage
from clusterctl.operations.fabric_files import PlanFiles, fabric_in, limits_named, moments, plan_in, reading


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricReportRequest:
    """What the report is made of.

    fabric    a recorded reading
    plan      a wiring plan; none: the rules that most cables of the fabric follow
    counters  readings of counters in order of time: two or more, or none
    seconds   between two readings; None: by the times in them
    limits    fabric limits by name, or a file
    """

    fabric: Path
    plan: PlanFiles = PlanFiles()  # noqa: RUF009 — frozen
    counters: tuple[Path, ...] = ()
    seconds: float | None = None
    limits: str = "ndr"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterHistory:
    """Readings of counters, and when each was taken, in seconds since the first; `health` judges first and last."""

    readings: tuple[Telemetry, ...]
    moments: tuple[float, ...]
    labels: FabricLabels
    health: FabricHealth


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricReport:
    """The fabric, judged. `rules`: those that stand for a plan; None where there is a plan."""

    fabric: Fabric
    plan: WiringPlan
    verification: CablingVerification
    rules: tuple[str, ...] | None = None
    counters: CounterHistory | None = None

    @property
    def exit_code(self) -> int:
        """0: all cables are as planned, and every link that has readings is proven healthy."""
        health = self.counters.health if self.counters else None
        healthy = health is None or (health.verdict.admits and not health.stop)
        return 0 if healthy and self.verification.as_planned else 1


def run(request: FabricReportRequest) -> FabricReport:
    """Judge a fabric. Raises `UsageError` for a file that is not understood, and for a single reading of counters."""
    fabric = fabric_in(request.fabric)
    given = plan_in(request.plan) if request.plan.files else None
    counters = _counters(request, fabric, given) if request.counters else None
    if given is not None:
        return FabricReport(fabric=fabric, plan=given, verification=verify(given, fabric), counters=counters)
    found = verify_unplanned(fabric)
    return FabricReport(
        fabric=fabric,
        plan=found.inference.plan,
        verification=found.verification,
        rules=(*found.inference.rules, *found.inference.limits),
        counters=counters,
    )


def _counters(request: FabricReportRequest, fabric: Fabric, plan: WiringPlan | None) -> CounterHistory:
    if len(request.counters) < 2:
        remedy = "give a second reading, taken later: what stands in counters may be years old"
        raise UsageError("one reading shows no growth", where="--counters", remedy=remedy)
    with as_usage():
        read = [reading(file, fabric) for file in request.counters]
    readings: Sequence[Telemetry] = [counters for _, counters in read]
    times = moments(request.counters, tuple(readings), request.seconds)
    labels = fabric_labels(fabric, plan)
    window = HealthWindow(readings[0], readings[-1], times[-1], limits_named(request.limits))
    return CounterHistory(
        readings=tuple(readings),
        moments=times,
        labels=labels,
        health=judge_health(fabric, window, labels, read[0][0]),
    )
