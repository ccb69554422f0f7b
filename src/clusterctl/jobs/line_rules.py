"""The rules for lines of job logs: `data/lines.yml`, explained there."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.blame import Blame, Certainty, Failure, Layer, Persistence, Role
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.regular_expressions import compiled
from clusterctl.formats.job_lines import read_line
from clusterctl.formats.site.yaml_document import parse_yaml, validate
from clusterctl.jobs.meaning import MAX_LINE, Meaning

_FILE = "data/lines.yml"


_Regex = Annotated[re.Pattern[str], pydantic.BeforeValidator(compiled)]
_Text = Annotated[str, pydantic.Field(min_length=1)]


class LineRule(pydantic.BaseModel):
    """One row of the table; its fields are explained there."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    name: _Text
    words: Annotated[tuple[_Text, ...], pydantic.Field(min_length=1)]
    patterns: Annotated[tuple[_Regex, ...], pydantic.Field(min_length=1)]
    failure: Failure
    layer: Layer
    certainty: Certainty
    role: Role
    persistence: Persistence
    meaning: _Text
    remedy: _Text
    source: _Text

    def parts(self, text: str) -> Mapping[str, str] | None:
        """Return what the line names; None where the rule does not fit."""
        if not any(word in text for word in self.words):
            return None
        for pattern in self.patterns:
            if match := pattern.search(text):
                return {name: value for name, value in match.groupdict().items() if value}
        return None

    def means(self, parts: Mapping[str, str]) -> Meaning:
        return Meaning(
            rule=self.name,
            blame=Blame(self.layer, self.certainty, self.role, self.persistence),
            failure=self.failure,
            meaning=self.meaning,
            remedy=self.remedy,
            source=self.source,
            parts=parts,
        )


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    rules: Annotated[tuple[LineRule, ...], pydantic.Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class LineTable:
    """Rules in order."""

    rules: tuple[LineRule, ...]

    @property
    def words(self) -> frozenset[str]:
        """Texts of which one is in each line that a rule may fit."""
        return frozenset(word for rule in self.rules for word in rule.words)

    def meaning(self, raw: str) -> Meaning | None:
        """Return the meaning by the first rule that fits; None where none does. Launcher prefixes are left out."""
        text = read_line(raw[:MAX_LINE]).text.rstrip()
        for rule in self.rules:
            parts = rule.parts(text)
            if parts is not None:
                return rule.means(parts)
        return None


@functools.cache
def shipped_lines() -> LineTable:
    """Return the shipped table."""
    text = importlib.resources.files("clusterctl.jobs").joinpath(_FILE).read_text(encoding="utf-8")
    return parse_lines(text, where=_FILE)


def parse_lines(text: str, *, where: str) -> LineTable:
    """Read a table; `UsageError` names file, line and field."""
    document = parse_yaml(text, where)
    file = validate(document, _File, "the comments at the head of src/clusterctl/jobs/data/lines.yml")
    names = [rule.name for rule in file.rules]
    for index, name in enumerate(names):
        if name in names[:index]:
            here = document.where("rules", index)
            raise UsageError(f"{name!r} stands twice", where=here, remedy="give each rule a name of its own")
    return LineTable(file.rules)
