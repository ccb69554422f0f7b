"""YAML and where each of its values stands, so that an error can name file, line and field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from clusterctl.fleet.errors import UsageError

M = TypeVar("M", bound=BaseModel)
PathKey = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed YAML of `file`, and the 1-based line of each value by its path (`("batch", "install")`)."""

    file: str
    data: Any
    lines: Mapping[PathKey, int]

    def where(self, *path: str | int) -> str:
        """`site.yml:12 batch.install`; the nearest parent's line where the field itself is missing."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        return f"{self.file}:{self.lines.get(known, 1)} {_dotted(path)}".rstrip()


def parse_yaml(text: str, file: str) -> Document:
    """Parse YAML; what is none, and keys that stand twice, are errors that name the line."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(
            f"is not valid YAML: {problem}", where=f"{file}{line}", remedy="mend the indentation or quoting there"
        ) from None
    return Document(file, data, dict(_walk(file, root, ())) if root is not None else {})


def validate(document: Document, model: type[M], explained_in: str) -> M:
    """The document as `model`; every problem becomes one line of the error. `explained_in` is the page to read."""
    try:
        return model.model_validate(document.data if document.data is not None else {})
    except ValidationError as error:
        first, *others = [_sentence(document, item) for item in error.errors(include_url=False)]
        more = "".join(f"\n{where}: {text}" for where, text in others)
        remedy = f"{explained_in} explains every field"
        raise UsageError(first[1] + more, where=first[0], remedy=remedy) from None


def _sentence(document: Document, item: ErrorDetails) -> tuple[str, str]:
    path = tuple(part for part in item["loc"] if not _is_union_tag(part))
    found = item["input"]
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "missing":
        return document.where(*path), "this field is required"
    if item["type"] == "extra_forbidden":
        return document.where(*path), "there is no such field"
    shown = f", found {found!r}" if isinstance(found, str | int | float | bool) else ""
    return document.where(*path), f"{message[:1].lower()}{message[1:]}{shown}"


def _is_union_tag(part: str | int) -> bool:
    """Pydantic names the union's member in the path; a person's file has no such level."""
    return isinstance(part, str) and (part[:1].isupper() or "[" in part)


def _dotted(path: PathKey) -> str:
    return ".".join(str(part) for part in path)


def _walk(file: str, node: yaml.Node, path: PathKey) -> Iterator[tuple[PathKey, int]]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _walk(file, item, (*path, index))
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in seen:
                where = f"{file}:{line} {_dotted((*path, name))}"
                raise UsageError("is written twice", where=where, remedy="keep one of them")
            seen.add(name)
            yield (*path, name), line
            yield from _walk(file, value, (*path, name))
