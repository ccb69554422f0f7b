"""`PLAN.yml` of `clusterctl maintain`: read and checked against the site and the roles."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from clusterctl.edges.site import contents
from clusterctl.edges.site.load import Site
from clusterctl.edges.site.roles import GIVEN, shipped_roles
from clusterctl.edges.site.textfile import read_yaml
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.maintenance.plan import Change, GroupedBy, MaintenancePlan, WaveRule
from clusterctl.fleet.roles.problems import RoleProblem, unknown_role, wrong_choice, wrong_variables
from clusterctl.fleet.roles.selection import Choice
from clusterctl.formats.site.yaml_document import Document, validate
from clusterctl.formats.site.yaml_problems import FieldError
from clusterctl.site.configure import RoleNames
from clusterctl.site.fields import Count, FileName, Flag, Positive, Words, section, unique

EXPLAINED = "docs/how-to/maintain.md"
_Names = Annotated[tuple[Words, ...], Field(min_length=1), AfterValidator(unique)]


@section
class ChangeSection:
    """What is changed on each node."""

    roles: RoleNames = ()
    variables: dict[str, Any] = field(default_factory=dict)
    settings: Flag = False
    nic_firmware: Flag = False

    def __post_init__(self) -> None:
        if not (self.roles or self.variables or self.settings or self.nic_firmware):
            raise ValueError("give what is changed: variables, roles, settings or nic_firmware")


@section
class WavesSection:
    """The canaries, and what one wave consists of."""

    canary: Count = 2
    by: Literal["rack", "pod", "percent", "nodes"] = "nodes"
    size: Positive = 4
    pods: Annotated[dict[Words, _Names], Field(description="name of a pod: its racks, by name or pattern")] = field(
        default_factory=dict
    )

    def __post_init__(self) -> None:
        if self.by == "percent" and self.size > 100:
            raise FieldError("size", self.size, "must be 100 at most: a wave is a percentage of the nodes")
        if (self.by == "pod") != bool(self.pods):
            raise ValueError("by: pod and pods go together: pods names the racks of each pod")


@section
class RollbackSection:
    """What a roll back sets in place of the site's values."""

    variables: dict[str, Any] = field(default_factory=dict)


@section
class PlanFile:
    """`PLAN.yml`."""

    name: FileName
    reason: Words
    change: ChangeSection
    nodes: _Names = ()
    select: _Names = ()
    waves: WavesSection = WavesSection()
    stop_percent: Annotated[int, Field(ge=0, le=100, strict=True)] = 10
    drain_minutes: Positive = 240
    suite: FileName | None = None
    rollback: RollbackSection = RollbackSection()


def read_plan(site: Site, file: Path) -> MaintenancePlan:
    """Return the plan of a file. Raises `UsageError` with every problem, each at its file, line and field."""
    document = read_yaml(file)
    found = validate(document, PlanFile, EXPLAINED)
    problems = list(_problems(site, document, found))
    if problems:
        (where, first), *others = problems
        more = "".join(f"\n{place}: {other.text} ({other.remedy})" for place, other in others)
        raise UsageError(first.text + more, where=where, remedy=first.remedy)
    change, rule = found.change, found.waves
    return MaintenancePlan(
        name=found.name,
        reason=found.reason,
        change=Change(
            roles=change.roles,
            variables=change.variables,
            settings=change.settings,
            nic_firmware=change.nic_firmware,
        ),
        nodes=found.nodes,
        select=found.select,
        waves=WaveRule(canary=rule.canary, by=GroupedBy(rule.by), size=rule.size, pods=rule.pods),
        stop_percent=found.stop_percent,
        drain_minutes=found.drain_minutes,
        suite=found.suite or "",
        back_variables=found.rollback.variables,
    )


def _problems(site: Site, document: Document, found: PlanFile) -> Iterator[tuple[str, RoleProblem]]:
    """Yield what is wrong with the plan's roles, variables and suite, each with its place."""
    roles = shipped_roles()
    for number, name in enumerate(found.change.roles):
        if problem := unknown_role(name, roles):
            yield document.where("change", "roles", number), problem
    secrets = site.settings.configure.secrets
    for path, variables in (("change", found.change.variables), ("rollback", found.rollback.variables)):
        for problem in wrong_variables(variables, roles):
            yield document.where(path, "variables", problem.about), problem
        for name in variables:
            if name in secrets:
                text = f"{name} is a secret of the site: a plan is kept in the journal"
                yield document.where(path, "variables", name), RoleProblem(name, text, "change the secret in site.yml")
    for name in found.rollback.variables:
        if name not in found.change.variables:
            text = f"{name} is not changed by the plan"
            yield document.where("rollback", "variables", name), RoleProblem(name, text, "take it out of rollback")
    yield from _lacking(site, document, found)
    yield from _wrong_pods(site, document, found)
    yield from _other_problems(site, document, found)


def _lacking(site: Site, document: Document, found: PlanFile) -> Iterator[tuple[str, RoleProblem]]:
    """Yield what the plan's roles require and neither the plan nor the site has."""
    chosen = site.settings.configure
    variables = dict(chosen.variables) | found.change.variables
    for group in chosen.groups:
        variables |= group.variables
    given = frozenset(GIVEN | chosen.secrets.keys())
    choice = Choice(tuple(dict.fromkeys((*chosen.roles, *found.change.roles))), variables)
    for problem in wrong_choice(choice, given, shipped_roles()):
        if problem.about in found.change.roles:
            yield document.where("change", "roles", found.change.roles.index(problem.about)), problem


def _wrong_pods(site: Site, document: Document, found: PlanFile) -> Iterator[tuple[str, RoleProblem]]:
    """Yield the patterns of pods that match no rack of the site, or a rack of an earlier pod."""
    racks = {node.rack for node in site.nodes if node.rack}
    taken: dict[str, str] = {}
    for pod, patterns in found.waves.pods.items():
        own = {rack for pattern in patterns for rack in fnmatch.filter(racks, pattern)}
        for number, pattern in enumerate(patterns):
            if not fnmatch.filter(racks, pattern):
                problem = RoleProblem(
                    pattern, f"no rack of the site is called {pattern!r}", "clusterctl nodes lists racks"
                )
                yield document.where("waves", "pods", pod, number), problem
        for rack in sorted(own & taken.keys()):
            problem = RoleProblem(rack, f"rack {rack} is in pod {taken[rack]}, too", "keep it in one pod")
            yield document.where("waves", "pods", pod), problem
        taken |= dict.fromkeys(own, pod)


def _other_problems(site: Site, document: Document, found: PlanFile) -> Iterator[tuple[str, RoleProblem]]:
    for number, pattern in enumerate(found.nodes):
        if not fnmatch.filter(site.by_name, pattern):
            problem = RoleProblem(
                pattern, f"no node of the site is called {pattern!r}", "clusterctl nodes lists their names"
            )
            yield document.where("nodes", number), problem
    if found.suite:
        try:
            contents.suite(replace(site, settings=replace(site.settings, burnin=found.suite)))
        except UsageError as error:
            own = (site.folder / "suites" / f"{found.suite}.yml").is_file()
            text = f"{error.where}: {error.message}" if own else error.message
            yield document.where("suite"), RoleProblem("suite", text, error.remedy)
    if found.change.settings and not any(sku.baseline for sku in site.skus):
        remedy = "name one in a SKU file, baseline: NAME (docs/how-to/settings.md)"
        yield document.where("change", "settings"), RoleProblem("settings", "no SKU of the site has a baseline", remedy)
    if found.change.nic_firmware and not site.settings.configure.variables.get("nic_firmware_images"):
        remedy = "write nic_firmware_images into configure.variables of site.yml (roles/nic_firmware/README.md)"
        yield (
            document.where("change", "nic_firmware"),
            RoleProblem("nic_firmware", "the site names no image of the adapters' firmware", remedy),
        )
