"""Suites: which checks and loads a node must pass, and how often it meets a new partner."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Annotated, Literal

import pydantic

from clusterctl.burnin.check import Check
from clusterctl.burnin.limit import EXPLAINED
from clusterctl.burnin.package_data import shipped
from clusterctl.burnin.registry import CHECKS
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.yaml_document import parse_yaml, validate

IB_WRITE_BW = "ib_write_bw"
ALL_REDUCE = "all_reduce"
Rounds = Annotated[int, pydantic.Field(ge=1, le=64, strict=True)]
PairSeconds = Annotated[int, pydantic.Field(ge=1, le=86_400, strict=True)]
GroupIterations = Annotated[int, pydantic.Field(ge=1, le=10_000_000, strict=True)]


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    name: str
    checks: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    loads: tuple[Literal["ib_write_bw", "all_reduce"], ...]
    pair_rounds: Rounds
    group_rounds: Rounds = 1
    pair_seconds: PairSeconds | None = None
    group_iterations: GroupIterations | None = None
    somebody_is_bad: Annotated[bool, pydantic.Field(strict=True)] = False


@dataclass(frozen=True, slots=True)
class Changes:
    """What a site changes about a suite; None leaves it as the suite says."""

    pair_rounds: int | None = None
    group_rounds: int | None = None
    pair_seconds: int | None = None
    group_iterations: int | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """What a burn-in consists of.

    checks            in order, causes before consequences
    pair_rounds       with how many partners each node is measured
    group_rounds      in how many groups, two nodes meeting again as late as possible
    pair_seconds      how long a pair is loaded; None: as many messages as the limits file says
    group_iterations  how often a group repeats its sum; None: as the limits file says
    somebody_is_bad   jobs have gone wrong: what goes wrong in a load is then not taken for chance alone
    """

    name: str
    checks: tuple[Check, ...]
    loads: tuple[str, ...]
    pair_rounds: int
    group_rounds: int = 1
    pair_seconds: int | None = None
    group_iterations: int | None = None
    somebody_is_bad: bool = False

    @property
    def required(self) -> frozenset[str]:
        """The names that a complete report has findings of."""
        return frozenset(check.name for check in self.checks) | frozenset(self.loads)

    @property
    def least_seconds(self) -> int:
        """A node's loads take at least so long, as far as the suite itself says it."""
        return self.pair_rounds * (self.pair_seconds or 0) if IB_WRITE_BW in self.loads else 0

    def changed(self, changes: Changes) -> Suite:
        said = {field.name: getattr(changes, field.name) for field in fields(changes)}
        return replace(self, **{name: value for name, value in said.items() if value is not None})


def shipped_suite(name: str = "bootstrap") -> Suite:
    """The suite of that name that comes with this package."""
    text = shipped("suites", name, otherwise="no suite is called", where="burnin")
    return parse_suite(text, where=f"suites/{name}.yml")


def parse_suite(text: str, *, where: str) -> Suite:
    """Read a suite; `UsageError` names file, line and field."""
    document = parse_yaml(text, where)
    file = validate(document, _File, EXPLAINED)
    for index, name in enumerate(file.checks):
        if name not in CHECKS:
            remedy = f"the checks are {', '.join(sorted(CHECKS))}"
            raise UsageError(f"no check is called {name!r}", where=document.where("checks", index), remedy=remedy)
        if name in file.checks[:index]:
            raise UsageError(f"{name!r} stands twice", where=document.where("checks", index), remedy="take one out")
    for index, load in enumerate(file.loads):
        if load in file.loads[:index]:
            raise UsageError(f"{load!r} stands twice", where=document.where("loads", index), remedy="take one out")
    return Suite(
        name=file.name,
        checks=tuple(CHECKS[name] for name in file.checks),
        loads=file.loads,
        pair_rounds=file.pair_rounds,
        group_rounds=file.group_rounds,
        pair_seconds=file.pair_seconds,
        group_iterations=file.group_iterations,
        somebody_is_bad=file.somebody_is_bad,
    )
