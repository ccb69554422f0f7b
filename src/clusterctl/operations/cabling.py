"""Recorded fabrics against wiring plans: verification, what work on the cables has repaired, and lint of a plan."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.cabling.explain.explanation import CablingExplanation
from clusterctl.cabling.explain.verify import CablingVerification, Recheck, recheck, verify
from clusterctl.cabling.infer.plan import verify_unplanned
from clusterctl.cabling.lint.linter import LintResult, lint, lint_ethernet
from clusterctl.cabling.lint.plan_index import PlanRules
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.file_text import text_in
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl.operations.collector import collector_paused
from clusterctl.operations.documents import content
from clusterctl.operations.fabric_files import PlanFiles, drafts_in, fabric_in, guids_in, plan_in, transceivers_in


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """What is compared.

    fabric     a recorded reading
    plan       files of one wiring plan; none: the rules that most cables of the fabric follow
    guids      owners of adapters, which win over the names in the fabric
    host_gbps  the rate that a host's link must have; None: that of most of them
    """

    fabric: Path | None = None
    plan: PlanFiles = field(default_factory=PlanFiles)
    guids: Path | None = None
    host_gbps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredRules:
    """The rules that most cables follow, and how many cables they judge or cannot judge.

    limits  what cannot be seen without a plan
    """

    rules: tuple[str, ...]
    judged: int
    not_judged: int
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """Numbers of cables, and explanations in order of racks.

    as_planned  all cables are right: at most names differ
    inferred    None where there was a plan
    chassis     devices to visit for all physical actions
    warnings    of the tool that read the fabric, which may lack devices then
    """

    planned: int
    observed: int
    right: int
    explanations: tuple[CablingExplanation, ...]
    as_planned: bool
    inferred: InferredRules | None = None
    chassis: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def moves(self) -> int:
        """The number of physical actions of all explanations."""
        return sum(explanation.moves for explanation in self.explanations)

    @property
    def exit_code(self) -> int:
        """0: all is as planned."""
        return 0 if self.as_planned else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckRequest:
    """`before`: the fabric that the work was planned on; `after`: as it is now; the others as in `VerifyRequest`."""

    plan: PlanFiles
    before: Path
    after: Path
    guids: Path | None = None
    host_gbps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecheckResult:
    """What is repaired, left and new. `as_planned`: all cables are right now."""

    found: Recheck
    as_planned: bool

    @property
    def exit_code(self) -> int:
        """0: everything is as planned now."""
        return 0 if self.as_planned else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRequest:
    """Wiring plans that are parts of one.

    fabric            a recorded reading, to compare names with GUIDs
    radix             ports of every switch; None: by model, else 64
    oversubscription  host links that may share one uplink of a leaf
    any_rail          leaves may carry several rails
    separate_rails    each rail is a network of its own
    ethernet          the files are Ethernet plans: no rails, no tiers
    """

    plan: PlanFiles
    fabric: Path | None = None
    radix: int | None = None
    oversubscription: float = 1.0
    any_rail: bool = False
    separate_rails: bool = False
    ethernet: bool = False


def run_verify(request: VerifyRequest) -> VerifyResult:
    """Compare a recorded fabric with a plan, or with the rules that most of its cables follow."""
    if request.fabric is None:
        remedy = "clusterctl cable verify --help shows what it takes"
        raise UsageError("it is required", where="--fabric", remedy=remedy)
    with collector_paused():
        fabric, hosts = fabric_in(request.fabric), guids_in(request.guids)
        if request.plan.files:
            plan, cables = plan_in(request.plan), transceivers_in(request.fabric, fabric)
            return _result(verify(plan, fabric, hosts, host_gbps=request.host_gbps, transceivers=cables))
        found = verify_unplanned(fabric, hosts, host_gbps=request.host_gbps)
        inference = found.inference
        rules = InferredRules(
            rules=inference.rules, judged=inference.judged, not_judged=inference.unjudged, limits=inference.limits
        )
        return _result(found.verification, rules)


def run_recheck(request: RecheckRequest) -> RecheckResult:
    """Compare two recorded fabrics with one plan."""
    with collector_paused():
        plan, hosts = plan_in(request.plan), guids_in(request.guids)
        first, second = (
            verify(plan, fabric_in(file), hosts, host_gbps=request.host_gbps)
            for file in (request.before, request.after)
        )
        return RecheckResult(found=recheck(first, second), as_planned=second.as_planned)


def run_lint(request: LintRequest) -> LintResult:
    """Check wiring plans before a cable is laid."""
    if request.ethernet:
        return lint_ethernet([read_ethernet_csv(text_in(content(f), str(f)), str(f)) for f in request.plan.files])
    rules = PlanRules(
        request.radix, request.oversubscription, rails=not request.any_rail, separate_rails=request.separate_rails
    )
    return lint(drafts_in(request.plan), rules, fabric_in(request.fabric) if request.fabric else None)


def _result(found: CablingVerification, inferred: InferredRules | None = None) -> VerifyResult:
    return VerifyResult(
        planned=found.planned,
        observed=found.observed,
        right=found.right,
        explanations=found.explanations,
        as_planned=found.as_planned,
        inferred=inferred,
        chassis=found.chassis,
        warnings=found.warnings,
    )
