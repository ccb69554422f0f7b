"""Kernel messages that are known to be harmless: the shipped ones (`data/kernel_lines.tsv`) and a site's."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.host.kernel_log import template
from clusterctl.formats.site.yaml_document import Document, parse_yaml, validate
from clusterctl_burnin.package_data import text_of

EXPLAINED = "docs/reference/kernel-log.md"
Text = Annotated[str, pydantic.Field(min_length=1)]


class _Line(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    message: str = ""
    pattern: str = ""
    why: Text


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    known: tuple[_Line, ...]


@dataclass(frozen=True, slots=True)
class KnownLines:
    """`templates` as a finding quotes them, and regular expressions that match anywhere in a message."""

    templates: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()

    def test(self) -> KnownTest:
        """Return a test for these and the shipped ones."""
        return KnownTest(self.templates, _combined((*shipped_patterns(), *self.patterns)))


@dataclass(frozen=True, slots=True)
class KnownTest:
    """Return True for a message that is known."""

    templates: frozenset[str]
    pattern: re.Pattern[str]

    def __call__(self, text: str) -> bool:
        return self.pattern.search(text) is not None or template(text) in self.templates


def parse_known_lines(text: str, *, where: str) -> KnownLines:
    """Read a site's `kernel_log.yml`; `UsageError` names file, line and field."""
    document = parse_yaml(text, where)
    file = validate(document, _File, EXPLAINED)
    for index, line in enumerate(file.known):
        for field, message in _mistakes(line):
            place = document.where("known", index, field) if field else document.where("known", index)
            raise UsageError(message, where=place, remedy=f"{EXPLAINED} shows how a line is written")
    _refuse_duplicates(file, document)
    return KnownLines(
        frozenset(line.message for line in file.known if line.message),
        tuple(line.pattern for line in file.known if line.pattern),
    )


def _mistakes(line: _Line) -> Iterator[tuple[str, str]]:
    """Yield each field that is wrong, and what is wrong with it."""
    if bool(line.message) == bool(line.pattern):
        yield "", "needs one of message and pattern"
    if line.pattern:
        try:
            regex = re.compile(f"(?:{line.pattern})")
        except (re.error, OverflowError, RecursionError) as error:
            yield "pattern", f"is no regular expression: {error}"
        else:
            if regex.groups:
                yield "pattern", "has a group that captures: write (?:…)"
            if regex.search(""):
                yield "pattern", "matches every message"
    if line.message and template(line.message) != line.message:
        yield (
            "message",
            f"contains what differs between messages; write it as a finding quotes it: {template(line.message)}",
        )


def _refuse_duplicates(file: _File, document: Document) -> None:
    seen: set[tuple[str, str]] = set()
    for index, line in enumerate(file.known):
        key = (line.message, line.pattern)
        if key in seen:
            raise UsageError("is a duplicate", where=document.where("known", index), remedy="remove one of the two")
        seen.add(key)


@functools.cache
def shipped_patterns() -> tuple[str, ...]:
    lines = text_of("data/kernel_lines.tsv").splitlines()
    return tuple(line.split("\t")[0] for line in lines if line and not line.startswith("#"))


@functools.lru_cache(maxsize=16)
def _combined(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
