"""Builds `clusterctl-node`: a zipapp of the checks' own modules and the compiled limits."""

from __future__ import annotations

import ast
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from clusterctl_burnin.node_check.program import CONTENT, Content

ENTRY = "clusterctl_burnin.node_check.program"
DATA = ("data", "node")
"""Folders of `clusterctl_burnin` whose files travel, too."""
_MAIN = """\
import sys
if sys.version_info < (3, 10):
    needed = "clusterctl-node needs Python 3.10 or later; this is %d.%d: call it with a newer one\\n"
    sys.stderr.write(needed % sys.version_info[:2])
    sys.exit(0 if set(sys.argv) & set(("health", "prolog", "epilog")) else 3)
import clusterctl_burnin.node_check.names
from clusterctl_burnin.node_check.program import main
sys.exit(main())
"""
"""Of any Python: 1 would be a failure of the node, and Slurm drains a node whose prolog ends with an error."""
_STAMP = (1980, 1, 1, 0, 0, 0)
"""The time of each file in the archive: the same content gives the same bytes."""


def build(content: Content) -> bytes:
    """Return the file: executable by Python 3.10 or later, and nothing else is needed."""
    modules = [f"clusterctl_burnin.checks.{name}" for name in content.checks]
    texts = {**closure([ENTRY, "clusterctl_burnin.node_check.names", *modules]), **dict(_data())}
    texts |= {"__main__.py": _MAIN, f"clusterctl_burnin/{CONTENT}": json.dumps(to_data(content), sort_keys=True)}
    buffer = io.BytesIO(b"#!/usr/bin/env python3\n")
    buffer.seek(0, io.SEEK_END)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        for path, text in sorted(texts.items()):
            archive.writestr(zipfile.ZipInfo(path, _STAMP), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def closure(names: Iterable[str]) -> Mapping[str, str]:
    """Return the texts of these modules and of all of ours that they import, by path in the archive."""
    found: dict[str, str] = {}
    waiting = list(names)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        waiting += [name.rpartition(".")[0]] if "." in name else []
        source = _source(name)
        if source is None:
            continue
        path, text = source
        found[path] = text
        waiting += _imported(text)
    return found


def _source(name: str) -> tuple[str, str] | None:
    """Return path and text of a module of ours; None for one that is not ours, or no module."""
    root, _, rest = name.partition(".")
    if root not in ("clusterctl", "clusterctl_burnin"):
        return None
    place: Traversable = files(root)
    for part in rest.split(".") if rest else ():
        place = place.joinpath(part)
    package = place.joinpath("__init__.py")
    if place.is_dir() and package.is_file():
        return f"{name.replace('.', '/')}/__init__.py", package.read_text(encoding="utf-8")
    module = files(root).joinpath(f"{rest.replace('.', '/')}.py")
    return (f"{name.replace('.', '/')}.py", module.read_text(encoding="utf-8")) if module.is_file() else None


def _imported(text: str) -> Iterator[str]:
    """Yield the modules that a text imports at run time, packages of names among them."""
    for node in ast.walk(_without_typing(ast.parse(text))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _without_typing(tree: ast.Module) -> ast.Module:
    """Return the module without what stands below `if TYPE_CHECKING`."""
    guarded = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    tree.body = [node for node in tree.body if node not in guarded]
    return tree


def _data() -> Iterator[tuple[str, str]]:
    """Yield the data files that checks and probes read."""

    def below(folder: Traversable, path: str) -> Iterator[tuple[str, str]]:
        for entry in folder.iterdir():
            if entry.is_dir():
                yield from below(entry, f"{path}/{entry.name}")
            elif entry.name.endswith((".py", ".tsv")):
                yield f"{path}/{entry.name}", entry.read_text(encoding="utf-8")

    for name in DATA:
        yield from below(files("clusterctl_burnin").joinpath(name), f"clusterctl_burnin/{name}")


_KINDS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    (Enum, lambda value: value.value),
    (Mapping, lambda value: {str(key): to_data(item) for key, item in value.items()}),
    ((frozenset, set), lambda value: sorted(to_data(item) for item in value)),
    ((list, tuple), lambda value: [to_data(item) for item in value]),
)


def to_data(value: Any) -> Any:
    """Return dataclasses and enumerations as JSON values, which `formats.documents` reads back."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_data(getattr(value, one.name)) for one in fields(value)}
    return next((turned(value) for kind, turned in _KINDS if isinstance(value, kind)), value)
