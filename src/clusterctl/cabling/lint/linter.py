"""The linter of wiring plans: it finds what cannot be built, or should not be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.cabling.lint.guids import name_flaws
from clusterctl.cabling.lint.hosts import host_flaws
from clusterctl.cabling.lint.lines import cage_flaws, port_flaws
from clusterctl.cabling.lint.plan_index import PlanProblem, PlanRules, index
from clusterctl.cabling.lint.rails import leaf_rails, rail_flaws
from clusterctl.cabling.lint.tree import island_flaws, tree_flaws
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.fleet.fabric.wiring import PlanDraft


@dataclass(frozen=True, slots=True)
class LintResult:
    """`unjudged` lists the rules that could not be judged, and how files were read in an unusual way."""

    cables: int
    devices: int
    flaws: tuple[PlanProblem, ...]
    unjudged: tuple[str, ...]


def lint(drafts: Iterable[PlanDraft], rules: PlanRules, fabric: Fabric | None = None) -> LintResult:
    """Return the problems of all files as one InfiniBand plan; with a fabric its GUIDs must fit the plan's names."""
    plan = index(drafts)
    flaws = [*port_flaws(plan, rules), *cage_flaws(plan)]
    unjudged = []
    if not leaf_rails(plan):
        unjudged.append("rails: the plan has no adapter's rail, neither by the adapter's name nor in a column `rail`")
    elif rules.rails:
        flaws += rail_flaws(plan)
    flaws += [*host_flaws(plan), *tree_flaws(plan, rules), *island_flaws(plan, rules)]
    if fabric is not None:
        flaws += name_flaws(plan, fabric)
    devices = {end.device for entry in plan.listed for end in entry.ends}
    notes = [note for draft in plan.drafts for note in draft.notes]
    return LintResult(len(plan.listed), len(devices), tuple(flaws), (*unjudged, *notes))


def lint_ethernet(drafts: Iterable[PlanDraft]) -> LintResult:
    """Return the problems of single lines: Ethernet plans have no rails and no tiers."""
    plan = index(drafts)
    devices = {end.device for entry in plan.listed for end in entry.ends}
    return LintResult(len(plan.listed), len(devices), tuple(port_flaws(plan, PlanRules())), ())
