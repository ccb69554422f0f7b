"""YAML and where each of its values stands, so that an error can name file, line and field."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from clusterctl.fleet.errors import UsageError

MAX_BYTES = 4 * 1024 * 1024

M = TypeVar("M", bound=BaseModel)
PathKey = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed YAML, and the 1-based line of each value by its path (`("batch", "install")`)."""

    file: Path
    data: Any
    lines: dict[PathKey, int]

    def where(self, path: PathKey) -> str:
        """`site.yml:12 batch.install`; the nearest parent's line where the field itself is missing."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                line = self.lines[path[:length]]
                return f"{self.file}:{line} {_dotted(path)}".rstrip()
        return f"{self.file} {_dotted(path)}".rstrip()


def read_text(file: Path) -> str:
    """A text file of the person's: exists, is a file, of sane size, UTF-8."""
    try:
        if file.is_dir():
            raise UsageError("is a directory, not a file", where=str(file), remedy="name the file itself")
        if file.stat().st_size > MAX_BYTES:
            raise UsageError(f"is larger than {MAX_BYTES >> 20} MiB", where=str(file), remedy="is it the right file?")
        return file.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise UsageError(
            "does not exist", where=str(file), remedy="create it, or write a new site with clusterctl init DIR"
        ) from None
    except PermissionError:
        raise UsageError("may not be read", where=str(file), remedy="check its owner and mode") from None
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise UsageError("is not UTF-8 text", where=f"{file}:{line}", remedy="save it as UTF-8") from None


def read_yaml(file: Path) -> Document:
    """Parse a YAML file; duplicate keys are errors."""
    text = read_text(file)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        lines: dict[PathKey, int] = {(): 1}
        if root is not None:
            _walk(file, root, (), lines)
        return Document(file, yaml.safe_load(text), lines)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(
            f"is not valid YAML: {problem}", where=f"{file}{line}", remedy="mend the indentation or quoting there"
        ) from None


def validate(document: Document, model: type[M]) -> M:
    """The document as `model`; every problem becomes one line of the error."""
    try:
        return model.model_validate(document.data if document.data is not None else {})
    except ValidationError as error:
        details = error.errors(include_url=False)
        first, *others = [_sentence(document, item) for item in details]
        more = "".join(f"\n{where}: {text}" for where, text in others)
        raise UsageError(first[1] + more, where=first[0], remedy="docs/site-file.md explains every field") from None


def _sentence(document: Document, item: ErrorDetails) -> tuple[str, str]:
    path = tuple(part for part in item["loc"] if not _is_union_tag(part))
    found = item["input"]
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "missing":
        return document.where(path), "this field is required"
    if item["type"] == "extra_forbidden":
        return document.where(path), "there is no such field"
    shown = f", found {found!r}" if isinstance(found, str | int | float | bool) else ""
    return document.where(path), f"{message[:1].lower()}{message[1:]}{shown}"


def _is_union_tag(part: str | int) -> bool:
    """Pydantic names the union's member in the path; a person's file has no such level."""
    return isinstance(part, str) and (part[:1].isupper() or "[" in part)


def _dotted(path: PathKey) -> str:
    return ".".join(str(part) for part in path)


def _walk(file: Path, node: yaml.Node, path: PathKey, lines: dict[PathKey, int]) -> None:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(file, item, (*path, index), lines)
    elif isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise UsageError(
                    "is written twice",
                    where=f"{file}:{key.start_mark.line + 1} {_dotted((*path, name))}",
                    remedy="keep one of them",
                )
            seen.add(name)
            _walk(file, value, (*path, name), lines)
            lines[*path, name] = key.start_mark.line + 1
