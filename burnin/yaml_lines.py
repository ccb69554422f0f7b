"""Where in a YAML text a field stands, for error messages that name file, line and field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Line numbers (from 1) of every field of one text, which `file` names."""

    file: str
    lines: Mapping[Path, int]

    @classmethod
    def of(cls, text: str, file: str) -> Lines:
        """Raises `yaml.MarkedYAMLError` for what is not YAML, and for a key that stands twice."""
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return cls(file, dict(_walk(root, ())) if root is not None else {})

    def where(self, *path: str | int) -> str:
        """`file:line field`; the line of the nearest field above one that is missing."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        field = ".".join(str(part) for part in path)
        return f"{self.file}:{self.lines.get(known, 1)} {field}".rstrip()


def _walk(node: yaml.Node, path: Path) -> Iterator[tuple[Path, int]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value!r} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
            yield (*path, key.value), key.start_mark.line + 1
            yield from _walk(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _walk(item, (*path, index))
