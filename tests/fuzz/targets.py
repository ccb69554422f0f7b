"""What is fuzzed: every parser of `clusterctl.formats`, for files, programs' output and messages of peers.

They are found by convention, so that a new parser is fuzzed without a change here: its name begins with `parse_` or
`read_`, or its first parameter is a `body` that a peer sent. The other parameters have values in `OTHERS`.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

from clusterctl import formats
from clusterctl.fleet import errors
from clusterctl.fleet.fabric.topology import Fabric
from clusterctl.formats.redfish.tree import Answers, Unreadable

CORPUS = Path(__file__).parent / "corpus"
ENTRANCES = ("text", "message", "lines", "answers", "root", "body")
"""Names of a first parameter that is foreign."""
NAMED = re.compile(r"\b\w*Error\b")
OF_PACKAGE: Mapping[str, tuple[type[Exception], ...]] = {"redfish": (errors.EdgeError,), "site": (errors.UsageError,)}
"""Errors of all parsers of a package: a resource that a BMC does not give, and an operator's own file."""
NO_PARSERS = {"clusterctl.formats.documents", "clusterctl.formats.file_text", "clusterctl.formats.infiniband.terminal"}
"""Modules of helpers that parsers share: their errors become the parsers' own."""


@dataclass(frozen=True, slots=True)
class Target:
    """One parser. `allowed`: the errors that it documents."""

    name: str
    parse: Callable[[str], object]
    allowed: tuple[type[Exception], ...]

    @property
    def seeds(self) -> list[str]:
        """Return the texts of its folder in the corpus; an empty one where it has none."""
        files = sorted((CORPUS / self.name).glob("*")) if (CORPUS / self.name).is_dir() else []
        return [file.read_bytes().decode("utf-8", "surrogateescape") for file in files] or [""]

    def run(self, text: str) -> None:
        """Parse; raise what the parser does not document."""
        with contextlib.suppress(*self.allowed):
            found = self.parse(text)
            if isinstance(found, Iterator):
                collections.deque(found, maxlen=0)


def targets() -> list[Target]:
    """Return all parsers by name."""
    return sorted(_found(), key=lambda target: target.name)


def _found() -> Iterator[Target]:
    for module_info in pkgutil.walk_packages(formats.__path__, "clusterctl.formats."):
        module = importlib.import_module(module_info.name)
        if module.__name__ in NO_PARSERS:
            continue
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                parse = _callable(function)
                if parse is not None:
                    short = f"{module.__name__.removeprefix('clusterctl.formats.')}.{name}"
                    yield Target(short, parse, _documented(function, module))


def _documented(function: Callable[..., Any], module: Any) -> tuple[type[Exception], ...]:
    """Return the errors that a parser documents: in its docstring, else in its module's; `ParseError` always."""
    text = function.__doc__ or ""
    named = NAMED.findall(text) or NAMED.findall(module.__doc__ or "")
    known = [getattr(errors, name, None) or getattr(__import__("builtins"), name, None) for name in named]
    package = module.__name__.removeprefix("clusterctl.formats.").partition(".")[0]
    return (errors.ParseError, *OF_PACKAGE.get(package, ()), *(kind for kind in known if kind is not None))


def _callable(function: Callable[..., Any]) -> Callable[[str], object] | None:
    """Return the function as one of a text; None where its first parameter is not foreign."""
    first, *others = inspect.signature(function, eval_str=True).parameters.values()
    if first.name not in ENTRANCES or not (function.__name__.startswith(("parse_", "read_")) or first.name == "body"):
        return None
    convert = _conversion(str(first.annotation))
    keywords = {}
    for one in others:
        if one.name in OTHERS:
            keywords[one.name] = OTHERS[one.name]
        elif one.default is inspect.Parameter.empty:
            raise LookupError(f"{function.__module__}.{function.__name__}: OTHERS has no value for {one.name}")
    positional = [one.name for one in others if one.kind is one.POSITIONAL_OR_KEYWORD and one.name in keywords]
    values = [keywords.pop(name) for name in positional]
    return lambda text: function(convert(text), *values, **keywords)


def _conversion(annotation: str) -> Callable[[str], Any]:
    if "bytes" in annotation:
        return lambda text: text.encode("utf-8", "surrogatepass")
    if "Iterable[str]" in annotation:
        return lambda text: text.splitlines(keepends=True)
    if annotation == str(Answers):
        return _answers
    if "Mapping" in annotation:
        return lambda text: {"text": text, **(found if isinstance(found := _json(text), dict) else {})}
    if "Any" in annotation:
        return _json
    return lambda text: text


def _answers(text: str) -> Any:
    """Return answers of a BMC by path: the edge lets only JSON objects in."""
    found = _json(text)
    answers = found.items() if isinstance(found, dict) else []
    return {path: body if isinstance(body, dict) else Unreadable("HTTP 500") for path, body in answers}


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {"/redfish/v1": {"text": text}}
    return value if isinstance(value, dict | list) else {"value": value}


OTHERS: Mapping[str, Any] = {
    "zone": UTC,
    "count": 2,
    "file": "file",
    "where": "where",
    "fabric": Fabric({}, ()),
    "paths": 2,
    "transaction": 7,
    "address": "192.0.2.1",
    "user": "root",
    "location": "/redfish/v1/TaskService/Tasks/1",
    "path": "/redfish/v1/Systems/1",
    "status": 400,
    "dell": True,
}
"""Parameter → a value that any text may meet."""
