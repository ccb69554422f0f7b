"""Suites: which checks and loads a node must pass, and how often it meets a new partner."""

from __future__ import annotations

from dataclasses import dataclass
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


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    name: str
    checks: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    loads: tuple[Literal["ib_write_bw", "all_reduce"], ...]
    pair_rounds: Annotated[int, pydantic.Field(ge=1)]


@dataclass(frozen=True, slots=True)
class Suite:
    """`checks` in order, causes before consequences; `pair_rounds`: with how many partners each node is measured."""

    name: str
    checks: tuple[Check, ...]
    loads: tuple[str, ...]
    pair_rounds: int

    @property
    def required(self) -> frozenset[str]:
        """The names that a complete report has findings of."""
        return frozenset(check.name for check in self.checks) | frozenset(self.loads)


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
    return Suite(file.name, tuple(CHECKS[name] for name in file.checks), file.loads, file.pair_rounds)
