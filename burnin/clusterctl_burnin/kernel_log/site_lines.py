"""The reader of a site's `kernel_log.yml`: kernel messages that are harmless there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.regular_expressions import compiled
from clusterctl.formats.documents import Text
from clusterctl.formats.host.kernel_log import template
from clusterctl.formats.site.yaml_document import Document, parse_yaml, validate
from clusterctl_burnin.kernel_log.known_lines import KnownLines

EXPLAINED = "docs/reference/kernel-log.md"


class _Line(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    message: str = ""
    pattern: str = ""
    why: Text


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    version: Literal[1]
    known: tuple[_Line, ...]


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
            regex = compiled(f"(?:{line.pattern})")
        except ValueError as error:
            yield "pattern", str(error)
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
