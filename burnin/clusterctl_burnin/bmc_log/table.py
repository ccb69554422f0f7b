"""The table of what entries of BMCs' logs mean: `data/bmc_log.yml`, explained there."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.regular_expressions import compiled
from clusterctl.formats.site.yaml_document import parse_yaml, validate
from clusterctl_burnin.package_data import text_of

_FILE = "data/bmc_log.yml"


class Weight(enum.Enum):
    """How much an entry weighs."""

    FATAL = "fatal"
    DEGRADED = "degraded"
    NOISE = "noise"
    REPAIRED = "repaired"
    BOOTED = "booted"


class LogComponent(enum.Enum):
    """What kind of part an entry is about."""

    PSU = "psu"
    FAN = "fan"
    TEMPERATURE = "temperature"
    DIMM = "dimm"
    CPU = "cpu"
    DRIVE = "drive"
    GPU = "gpu"
    NVSWITCH = "nvswitch"
    HCA = "hca"
    PCIE = "pcie"
    BATTERY = "battery"
    CHASSIS = "chassis"
    SYSTEM = "system"
    BMC = "bmc"


def _compiled(text: object) -> re.Pattern[str]:
    return compiled(text, re.IGNORECASE)


_Regex = Annotated[re.Pattern[str], pydantic.BeforeValidator(_compiled)]


class LogRule(pydantic.BaseModel):
    """One row of the table; its fields are explained there."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    name: str
    component: LogComponent
    weight: Weight
    lasting: bool = False
    until_boot: bool = False
    repairs: tuple[str, ...] = ()
    ids: tuple[_Regex, ...] = ()
    text: tuple[_Regex, ...] = ()
    sensors: frozenset[str] = frozenset()
    remedy: str
    source: Annotated[str, pydantic.Field(min_length=1)]


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    recent_days: Annotated[int, pydantic.Field(ge=1)]
    rules: Annotated[tuple[LogRule, ...], pydantic.Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class LogMeaning:
    """The rule that an entry fits, and the part as the entry names it; empty where it names none."""

    rule: LogRule
    part: str


@dataclass(frozen=True, slots=True)
class LogTable:
    """Rules in order; an entry not older than `recent` may hold today."""

    rules: Sequence[LogRule]
    recent: timedelta

    def meaning(self, entry: LogEntry) -> LogMeaning | None:
        """Return the meaning by the first rule that fits; None where none does."""
        return next((found for rule in self.rules if (found := _fits(rule, entry)) is not None), None)


@functools.cache
def shipped_table() -> LogTable:
    return parse_table(text_of(_FILE), where=_FILE)


def parse_table(text: str, *, where: str) -> LogTable:
    """Read a table; `UsageError` names file, line and field."""
    document = parse_yaml(text, where)
    file = validate(document, _File, "the comments at the head of burnin/clusterctl_burnin/data/bmc_log.yml")
    names = [rule.name for rule in file.rules]
    for index, rule in enumerate(file.rules):
        here = document.where("rules", index)
        if rule.name in names[:index]:
            raise UsageError(f"{rule.name!r} stands twice", where=here, remedy="give each rule a name of its own")
        if unknown := [name for name in rule.repairs if name not in names]:
            raise UsageError(f"repairs {unknown[0]!r}, which is no rule", where=here, remedy="name rules of this table")
        if not (rule.ids or rule.text):
            raise UsageError("fits nothing", where=here, remedy="give it ids or text")
    return LogTable(file.rules, timedelta(days=file.recent_days))


def _fits(rule: LogRule, entry: LogEntry) -> LogMeaning | None:
    if rule.sensors and entry.sensor and entry.sensor not in rule.sensors:
        return None
    for pattern in rule.text:
        if match := pattern.search(entry.message):
            return LogMeaning(rule, (match.groupdict().get("part") or "").strip())
    last = entry.message_id.rsplit(".", 1)[-1]
    if last and any(pattern.fullmatch(last) for pattern in rule.ids):
        return LogMeaning(rule, "")
    return None
