"""Suites: which checks and loads a node must pass, and how often it meets a new partner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_document import Document, parse_yaml, validate
from clusterctl.site.burnin import GroupIterations, NodeSeconds, PairMeetings, PairSeconds, Rounds
from clusterctl_burnin.check import Check
from clusterctl_burnin.limits.reading import EXPLAINED
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.package_data import shipped
from clusterctl_burnin.registry import CHECKS, GROUP_LOADS, NODE_LOADS

OWN = frozenset({"version", "name"})
"""What each file has for itself, whatever it extends."""
Find = Callable[[str], Document]
"""The suite of a name, whole. Raises `UsageError` where there is none."""


class _Differences(pydantic.BaseModel):
    """A suite's differences from another one; its other fields stand in the place of that one's."""

    model_config = pydantic.ConfigDict(extra="ignore")

    extends: Annotated[str, pydantic.Field(min_length=1)]
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def extended(document: Document, find: Find, known: Collection[str]) -> Document:
    """Return the document, completed from the suite that it `extends`; unchanged where it extends none.

    `find`: whole documents that are known to be right; `known`: all checks. Raise `UsageError` for what is no
    difference.
    """
    own = document.data
    if not isinstance(own, dict):
        return document
    if "extends" not in own:
        _require_none(document)
        return document
    differences = validate(document, _Differences, EXPLAINED)
    _require_one_way(document)
    base = _found(document, differences.extends, find)
    checks = own["checks"] if "checks" in own else _differing(document, differences, base.data["checks"], known)
    inherited = {key: value for key, value in base.data.items() if key not in OWN}
    rest = {key: value for key, value in own.items() if key not in _Differences.model_fields}
    return replace(document, data={**inherited, **_seconds(inherited, rest), **rest, "checks": checks})


def _seconds(inherited: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the seconds of loads; inherited ones hold for the loads that are still there."""
    loads = own.get("loads", inherited.get("loads"))
    seconds = inherited.get("node_seconds", {})
    return {"node_seconds": {name: value for name, value in seconds.items() if name in (loads or ())}}


def _found(document: Document, name: str, find: Find) -> Document:
    try:
        return find(name)
    except UsageError as error:
        if error.where:
            raise
        raise UsageError(error.message, where=document.where("extends"), remedy=error.remedy) from None


def _require_none(document: Document) -> None:
    for key in ("add", "drop"):
        if key in document.data:
            remedy = "add extends: bootstrap, or list all its checks under checks"
            raise UsageError("this suite extends none that could differ", where=document.where(key), remedy=remedy)


def _require_one_way(document: Document) -> None:
    for key in ("add", "drop"):
        if key in document.data and "checks" in document.data:
            remedy = f"take out {key}, or checks"
            raise UsageError("checks lists all of them already", where=document.where(key), remedy=remedy)


def _differing(document: Document, differences: _Differences, base: Sequence[str], known: Collection[str]) -> list[Any]:
    """Return `base` without what is dropped, and after it what is added."""
    for index, name in enumerate(differences.drop):
        if name not in base:
            remedy = f"{differences.extends} has {', '.join(base)}"
            words = f"{differences.extends} has no check {name!r} to drop"
            raise UsageError(words, where=document.where("drop", index), remedy=remedy)
    for index, name in enumerate(differences.add):
        if name not in known:
            remedy = f"the checks are {', '.join(sorted(known))}"
            raise UsageError(f"no check is called {name!r}", where=document.where("add", index), remedy=remedy)
        if name in base or name in differences.add[:index]:
            raise UsageError(f"{name!r} is there already", where=document.where("add", index), remedy="take one out")
    return [*(name for name in base if name not in differences.drop), *differences.add]


IB_WRITE_BW = "ib_write_bw"
HANG_HUNT = "hang_hunt"


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    name: str
    checks: Annotated[tuple[str, ...], pydantic.Field(min_length=1)]
    loads: tuple[str, ...]
    pair_rounds: Rounds
    group_rounds: Rounds = 1
    pair_meetings: PairMeetings = 0
    pair_seconds: PairSeconds | None = None
    group_iterations: GroupIterations | None = None
    hang_seconds: PairSeconds | None = None
    node_seconds: dict[str, NodeSeconds] = {}
    known_bad: Annotated[bool, pydantic.Field(strict=True)] = False


@dataclass(frozen=True, slots=True)
class SuiteText:
    """A suite as it was written, and the file to name in errors."""

    text: str
    where: str


NO_OTHERS: Mapping[str, SuiteText] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Changes:
    """What a site changes about a suite; None leaves the suite's value, as does a load that is not named."""

    pair_rounds: int | None = None
    group_rounds: int | None = None
    pair_meetings: int | None = None
    pair_seconds: int | None = None
    group_iterations: int | None = None
    hang_seconds: int | None = None
    node_seconds: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """What a burn-in consists of.

    checks            in order, causes before consequences
    loads             of several nodes
    pair_rounds       with how many partners each node is measured
    group_rounds      in how many groups, two nodes meeting again as late as possible
    pair_meetings     in how many wide groups each two nodes that passed are together; 0: none of their own
    pair_seconds      how long a pair is loaded; None: the messages of the limits file
    group_iterations  how often a group repeats its sum; None: by the limits file
    hang_seconds      how long a group sums until it hangs; None: by the limits file
    solo              loads of one node, which go before those of several
    node_seconds      for how long each of them runs; others: by the limits file
    known_bad   jobs have failed, so that a part is bad: a failed load is not explained by chance alone
    """

    name: str
    checks: tuple[Check, ...]
    loads: tuple[str, ...]
    pair_rounds: int
    group_rounds: int = 1
    pair_meetings: int = 0
    pair_seconds: int | None = None
    group_iterations: int | None = None
    hang_seconds: int | None = None
    known_bad: bool = False
    solo: tuple[NodeLoad, ...] = ()
    node_seconds: Mapping[str, int] = field(default_factory=dict)

    @property
    def required(self) -> frozenset[str]:
        """The names that a complete report has findings of."""
        return frozenset(check.name for check in self.checks) | frozenset(self.all_loads)

    @property
    def all_loads(self) -> tuple[str, ...]:
        """Their names, in the order in which they run."""
        return (*(load.name for load in self.solo), *self.loads)

    @property
    def least_seconds(self) -> int:
        """Return the least time of a node's loads, as far as the suite itself sets it."""
        pairs = self.pair_rounds * (self.pair_seconds or 0) if IB_WRITE_BW in self.loads else 0
        hang = self.group_rounds * (self.hang_seconds or 0) if HANG_HUNT in self.loads else 0
        return pairs + hang + sum(self.node_seconds.values())

    def as_dict(self) -> dict[str, Any]:
        """Return all of it by name, for the record of what a run was judged by."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "solo"}
        loads = [*(load.name for load in self.solo), *self.loads]
        return {**values, "checks": [check.name for check in self.checks], "loads": loads}

    def changed(self, changes: Changes) -> Suite:
        changed = {one.name: getattr(changes, one.name) for one in fields(changes)}
        if changes.node_seconds is not None:
            changed["node_seconds"] = {**self.node_seconds, **changes.node_seconds}
        return replace(self, **{name: value for name, value in changed.items() if value is not None})


def shipped_suite(name: str = "bootstrap") -> Suite:
    """Return the suite of that name that comes with this package."""
    return _suite(_Library({}).find(name))


def parse_suite(text: str, *, where: str, others: Mapping[str, SuiteText] = NO_OTHERS) -> Suite:
    """Read a suite; `UsageError` names file, line and field.

    others  the site's own suites by the names of their files: `extends` means them before it means a shipped one. One
            that extends the name of its own file means the shipped suite that it stands before
    """
    library = _Library(others)
    own = next((name for name, other in others.items() if other.where == where), None)
    return _suite(library.read(SuiteText(text, where), (own,) if own else ()))


@dataclass(frozen=True, slots=True)
class _Library:
    """Where the suites are that others extend."""

    others: Mapping[str, SuiteText]

    def find(self, name: str, below: tuple[str, ...] = ()) -> Document:
        """Return the document. `below`: the names of those that extend it, the outermost first.

        The error names no place where the name itself is wrong: the caller knows the place.
        """
        itself = below[-1:] == (name,)
        if name in below and not itself:
            way = " → ".join((*below, name))
            raise UsageError(f"these suites extend each other: {way}", remedy="let one of them list its checks")
        if name in self.others and not itself:
            return self.read(self.others[name], (*below, name))
        text = shipped("suites", name, otherwise="no suite is called", where="")
        document = parse_yaml(text, f"suites/{name}.yml")
        declared = [check.name for check in CHECKS.values() if name in check.suites]
        return self.whole(replace(document, data={"checks": declared, **document.data}), (*below, name))

    def read(self, text: SuiteText, names: tuple[str, ...]) -> Document:
        return self.whole(parse_yaml(text.text, text.where), names)

    def whole(self, document: Document, names: tuple[str, ...]) -> Document:
        """Return the suite with all that it takes over; `names` as for `find`. Raises `UsageError` for a mistake."""
        whole = extended(document, lambda name: self.find(name, names), CHECKS)
        _check(whole, validate(whole, _File, EXPLAINED))
        return whole


def _check(document: Document, file: _File) -> None:
    _check_names(document, "checks", file.checks, sorted(CHECKS))
    _check_names(document, "loads", file.loads, [*sorted(NODE_LOADS), *GROUP_LOADS])
    _check_seconds(document, file, [name for name in file.loads if name in NODE_LOADS])


def _check_names(document: Document, field_name: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Require that each is known, and occurs once."""
    for index, name in enumerate(names):
        where = document.where(field_name, index)
        if name not in known:
            remedy = f"the {field_name} are {', '.join(known)}"
            raise UsageError(f"no {field_name.removesuffix('s')} is called {name!r}", where=where, remedy=remedy)
        if name in names[:index]:
            raise UsageError(f"{name!r} stands twice", where=where, remedy="take one out")


def _check_seconds(document: Document, file: _File, solo: Sequence[str]) -> None:
    for name in file.node_seconds:
        if name not in solo:
            raise UsageError(
                f"{name!r} is no load of one node that this suite has",
                where=document.where("node_seconds", name),
                remedy=f"they are {', '.join(solo)}" if solo else "take it out, or name a load of one node under loads",
            )


def _suite(document: Document) -> Suite:
    file = validate(document, _File, EXPLAINED)
    given = file.model_dump(exclude={"version", "checks", "loads"})
    return Suite(
        checks=tuple(CHECKS[name] for name in file.checks),
        loads=tuple(name for name in file.loads if name in GROUP_LOADS),
        solo=tuple(NODE_LOADS[name] for name in file.loads if name in NODE_LOADS),
        **given,
    )
