"""YAML and where each of its values stands, so that an error can name file, line and field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_problems import FieldProblem, problems

M = TypeVar("M")
PathKey = tuple[str | int, ...]

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where PyYAML was built with libyaml: eight times as fast."""


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed YAML of `file`, and the 1-based line of each value by its path (`("batch", "install")`)."""

    file: str
    data: Any
    lines: Mapping[PathKey, int]

    def where(self, *path: str | int) -> str:
        """Return `site.yml:12 batch.install`; the nearest parent's line where the field itself is missing."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        return f"{self.file}:{self.lines.get(known, 1)} {_dotted(path)}".rstrip()


def parse_yaml(text: str, file: str) -> Document:
    """Parse YAML; what is none, what is no settings file (bombs), and keys that stand twice name their line."""
    try:
        guard(yaml.parse(text, Loader=_LOADER), file)
        loader = _LOADER(text)
        root = loader.get_single_node()
        if root is None:
            return Document(file, None, {})
        lines = dict(_walk(file, root, ()))
        return Document(file, _constructed(loader, root), lines)
    except yaml.YAMLError as error:
        raise _not_yaml(error, text, file) from None
    except UnicodeEncodeError:
        raise UsageError("is no UTF-8 text", where=file, remedy="save it as UTF-8") from None


def validate(document: Document, model: type[M], explained_in: str) -> M:
    """Return the document as `model`; every problem becomes one line of the error. `explained_in`: the page to read."""
    data = {} if document.data is None else document.data
    try:
        return TypeAdapter(model).validate_python(data)
    except ValidationError as error:
        first, *others = problems(error, model, data)
        more = "".join(f"\n{document.where(*other.path)}: {other.text}" for other in others)
        remedy = first.remedy or f"{explained_in} explains every field"
        raise UsageError(_text(first, document) + more, where=document.where(*first.path), remedy=remedy) from None


def _constructed(loader: yaml.SafeLoader, root: yaml.Node) -> Any:
    """Return the values. One that looks like a date or number and is none (`2026-02-31`) is an error at its line."""
    try:
        return loader.construct_document(root)
    except ValueError as error:
        for node in _scalars(root):
            try:
                _LOADER("").construct_object(node)
            except ValueError:
                problem = f"{str(error).splitlines()[0]}: {str(node.value)[:40]!r}"
                raise yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark) from None
        raise


def _scalars(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.ScalarNode):
        yield node
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(key)
            yield from _scalars(value)


def _text(problem: FieldProblem, document: Document) -> str:
    if document.data is None:
        return f"the file is empty; {problem.text}"
    return problem.text


def _not_yaml(error: yaml.YAMLError, text: str, file: str) -> UsageError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        problem = str(error).splitlines()[0]
        return UsageError(f"is not valid YAML: {problem}", where=file, remedy="save it as plain text")
    lines = text.splitlines()
    line = min(mark.line, max(0, len(lines) - 1))
    written = lines[line] if lines else ""
    where = f"{file}:{mark.line + 1}"
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return UsageError("is indented with a tab", where=where, remedy="indent with blanks: YAML allows no tabs there")
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return UsageError(
        f"is not valid YAML: {problem}", where=where, remedy="correct the indentation or quoting there, or just above"
    )


def _dotted(path: PathKey) -> str:
    return ".".join(str(part) for part in path)


def _walk(file: str, node: yaml.Node, path: PathKey) -> Iterator[tuple[PathKey, int]]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _walk(file, item, (*path, index))
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in seen:
                where = f"{file}:{line} {_dotted((*path, name))}"
                raise UsageError(
                    f"is written twice, first on line {seen[name]}", where=where, remedy="keep one of them"
                )
            seen[name] = line
            yield (*path, name), line
            yield from _walk(file, value, (*path, name))


MAX_DEPTH = 32
MAX_VALUES = 200_000
"""Each alias counted as all that it stands for. A site file that lists 4,096 nodes one by one holds 60,000."""


def guard(events: Iterable[yaml.Event], file: str) -> None:
    """Raise `UsageError` naming file and line; `yaml.YAMLError` where it is not YAML at all."""
    counter = _Counter(file)
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _error(event, file, "a second document begins here", "keep one: take the line --- out")
        elif isinstance(event, yaml.AliasEvent):
            counter.alias(event)
        elif isinstance(event, yaml.NodeEvent):
            counter.node(event)
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            counter.close()


class _Counter:
    """How many values there are, in each open collection and behind each anchor."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[tuple[str | None, int]] = []
        self._behind: dict[str, int] = {}
        self._total = 0

    def node(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)) and event.tag not in (None, "!"):
            raise _error(event, self._file, f"the tag {event.tag} is not understood", "write the plain value")
        self._add(event, 1)
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, self._total))
            if len(self._open) > MAX_DEPTH:
                message = f"nests deeper than {MAX_DEPTH} levels"
                raise _error(
                    event, self._file, message, "is it the right file? docs/reference/site-file.md shows its shape"
                )
        elif event.anchor:
            self._behind[event.anchor] = 1

    def close(self) -> None:
        anchor, before = self._open.pop()
        if anchor:
            self._behind[anchor] = self._total - before + 1

    def alias(self, event: yaml.AliasEvent) -> None:
        if any(anchor == event.anchor for anchor, _ in self._open):
            raise _error(event, self._file, f"*{event.anchor} stands within itself", "write the values out")
        self._add(event, self._behind.get(event.anchor or "", 1))

    def _add(self, event: yaml.Event, count: int) -> None:
        self._total += count
        if self._total > MAX_VALUES:
            message = f"holds more than {MAX_VALUES:,} values"
            raise _error(event, self._file, message, "write fewer values, and fewer aliases of aliases")


def _error(event: yaml.Event, file: str, message: str, remedy: str) -> UsageError:
    line = event.start_mark.line + 1 if event.start_mark else 1
    return UsageError(message, where=f"{file}:{line}", remedy=remedy)
