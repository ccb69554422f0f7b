"""The rules for kernel messages other than Xids: `data/kernel_log.yml`, explained there."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pydantic

from clusterctl.fleet.finding import Verdict
from clusterctl.formats.site.yaml_document import parse_yaml, validate
from clusterctl_burnin.package_data import text_of

_FILE = "data/kernel_log.yml"


class _Rule(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    part: Literal["node", "memory", "pci", "gpu", "hca", "nic", "nvme", "drive"]
    verdict: Literal["fail", "inconclusive", "warn", "pass"]
    words: tuple[str, ...] = pydantic.Field(min_length=1)
    patterns: tuple[str, ...] = pydantic.Field(min_length=1)
    cause: str = pydantic.Field(min_length=1)
    remedy: str = ""


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    names: dict[str, str]
    suspicious: tuple[str, ...]
    needed: tuple[str, ...]
    rules: tuple[_Rule, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """What messages of one class mean. `kind` is the kind of part that the finding is about."""

    kind: str
    verdict: Verdict
    words: tuple[str, ...]
    patterns: tuple[str, ...]
    cause: str
    remedy: str

    def part(self, text: str) -> str | None:
        """Return the part that the message names, empty where it names none; None where the rule does not fit."""
        if not any(word in text for word in self.words):
            return None
        for pattern in self.patterns:
            if match := compiled(pattern).search(text):
                return match.groupdict().get("part") or ""
        return None


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule that fits a message, and the part that the message names."""

    rule: Rule
    part: str

    @property
    def subject(self) -> str:
        return f"{self.rule.kind} {self.part}" if self.part else _SUBJECTS.get(self.rule.kind, self.rule.kind)


_SUBJECTS = {"memory": "node", "drive": "node", "nvme": "node"}
"""The subject of a message that names no part: the node, where several parts of the kind are usual."""


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules, in order."""

    rules: tuple[Rule, ...]
    suspicious: tuple[re.Pattern[str], ...]
    needed: tuple[re.Pattern[str], ...]

    def match(self, text: str) -> Hit | None:
        """Return the first rule that fits the message."""
        for rule in self.rules:
            part = rule.part(text)
            if part is not None:
                return Hit(rule, part)
        return None

    def suspects(self, text: str) -> bool:
        """Return True where a message that no rule knows reports an error of the hardware or of its driver."""
        return any(pattern.search(text) for pattern in self.suspicious)

    def concerns_training(self, text: str) -> bool:
        """Return True where a driver of a part that training needs has written the message."""
        return any(pattern.search(text) for pattern in self.needed)


@functools.cache
def shipped_rules() -> Rules:
    """Return the rules of `data/kernel_log.yml`."""
    file = validate(parse_yaml(text_of(_FILE), _FILE), _File, "docs/reference/kernel-log.md")
    return Rules(
        tuple(_rule(rule, file.names) for rule in file.rules),
        tuple(re.compile(_with_names(pattern, file.names)) for pattern in file.suspicious),
        tuple(re.compile(_with_names(pattern, file.names)) for pattern in file.needed),
    )


def _rule(rule: _Rule, names: Mapping[str, str]) -> Rule:
    patterns = tuple(_with_names(pattern, names) for pattern in rule.patterns)
    return Rule(rule.part, Verdict(rule.verdict), rule.words, patterns, rule.cause, rule.remedy)


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of a rule. Compiled for the first message that has the rule's words: few of 300 are needed."""
    return re.compile(pattern)


_NAME = re.compile(r"%(\w+)%")


def _with_names(pattern: str, names: Mapping[str, str]) -> str:
    """Return the pattern with each name replaced; a name may contain names."""
    while _NAME.search(pattern):
        pattern = _NAME.sub(lambda name: names[name[1]], pattern)
    return pattern
