"""What is fuzzed: everything that takes foreign text: files, programs' output and messages of peers.

It is found by types, so that a new parser is fuzzed without a change here: in `clusterctl.formats` every public function
with a parameter of a raw type (`str`, `bytes`, `Any`, a JSON object, lines, a BMC's answers), in the other packages
those called `parse_`, `read_` or `decode_`. Each raw parameter is the fuzzed text, unless `OTHERS` has a value of ours.
A function with a parameter that has neither fails a test: it gets a value, or a reason in `NOT_FOREIGN`.
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
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import clusterctl
import clusterctl_burnin
from clusterctl import formats
from clusterctl.fleet import errors
from clusterctl.formats.job_facts import JobFacts
from clusterctl.formats.netbox.records import read_device
from clusterctl.formats.redfish.tree import Resource, Unreadable
from clusterctl.formats.site.role_specs import Place
from clusterctl.formats.wiring.grid import text_grid
from tests.formats.infiniband.printers import two_switches

CORPUS = Path(__file__).parent / "corpus"
RELATIVES = 6
"""Seeds that a helper of parsers takes of them: it has no input of its own."""
_TEXT = re.compile(r"\b(?:str|bytes|bytearray|memoryview|Any|object|\w*IO)\b")
_OUTSIDE = re.compile(r"^def ((?:parse|read|decode)_\w+)\(\s*\w+: (?:str|bytes|Any|bytes \| str)\b", re.MULTILINE)
NAMED = re.compile(r"\b\w*Error\b")
OF_PACKAGE: Mapping[str, tuple[type[Exception], ...]] = {
    "redfish": (errors.EdgeError,),
    "site": (errors.UsageError,),
    "wiring": (errors.UsageError,),
    "clusterctl_burnin": (errors.UsageError,),
}
"""Errors of all parsers of a package: a resource that a BMC does not give, and an operator's own file."""


@dataclass(frozen=True, slots=True)
class Target:
    """One parser. `allowed`: the errors that it documents."""

    name: str
    parse: Callable[[str], object]
    allowed: tuple[type[Exception], ...]

    @property
    def seeds(self) -> list[str]:
        """Return the texts of its folder in the corpus; where it has none, a few of its module's or its package's."""
        files = sorted((CORPUS / self.name).glob("*")) or _of_relatives(self.name)
        return [file.read_bytes().decode("utf-8", "surrogateescape") for file in files]

    @property
    def accepted(self) -> list[str]:
        """Return the seeds that it understands."""
        return [text for text in self.seeds if self._understands(text)]

    def _understands(self, text: str) -> bool:
        try:
            found = self.parse(text)
            if isinstance(found, Iterator):
                collections.deque(found, maxlen=0)
        except self.allowed:
            return False
        return True

    def run(self, text: str) -> None:
        """Parse; raise what the parser does not document."""
        with contextlib.suppress(*self.allowed):
            found = self.parse(text)
            if isinstance(found, Iterator):
                collections.deque(found, maxlen=0)


def _of_relatives(name: str) -> list[Path]:
    """Return seeds of the parsers whose names begin as this one's; of the whole corpus where none does."""
    parts = name.split(".")
    beginnings = [".".join(parts[:count]) for count in range(len(parts) - 1, 0, -1)]
    found = ([*CORPUS.glob(f"{beginning}.*/*")] for beginning in beginnings)
    return sorted(next(filter(None, found), [*CORPUS.glob("*/*")]))[:RELATIVES]


def targets() -> list[Target]:
    """Return all parsers by name."""
    return sorted(_found(), key=lambda target: target.name)


def _found() -> Iterator[Target]:
    for module, name, function in functions():
        if short_name(module, name) not in NOT_FOREIGN:
            parse = _callable(short_name(module, name), function)
            if parse is not None:
                yield Target(short_name(module, name), parse, _documented(function, module))


def short_name(module: ModuleType, name: str) -> str:
    """Return `redfish.tree.normal` for what is in `clusterctl.formats`; the whole name of everything else."""
    return f"{module.__name__.removeprefix('clusterctl.formats.')}.{name}"


def functions() -> Iterator[tuple[ModuleType, str, Callable[..., Any]]]:
    """Yield every public function of the formats, and those of other packages that are parsers by their name."""
    for info in pkgutil.walk_packages(formats.__path__, "clusterctl.formats."):
        module = importlib.import_module(info.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                yield module, name, function
    for package in (clusterctl, clusterctl_burnin):
        root = Path(package.__path__[0])
        for file in sorted(root.rglob("*.py")):
            inner = file.relative_to(root)
            names = [] if inner.parts[0] == "formats" else _OUTSIDE.findall(file.read_text())
            dotted = ".".join((package.__name__, *inner.with_suffix("").parts))
            for name in names if dotted not in PROGRAMS else ():
                module = importlib.import_module(dotted)
                yield module, name, getattr(module, name)


def _documented(function: Callable[..., Any], module: Any) -> tuple[type[Exception], ...]:
    """Return the errors that a parser documents: in its docstring, else in its module's; `ParseError` always."""
    text = function.__doc__ or ""
    named = NAMED.findall(text) or NAMED.findall(module.__doc__ or "")
    known = [getattr(errors, name, None) or getattr(__import__("builtins"), name, None) for name in named]
    package = module.__name__.removeprefix("clusterctl.formats.").partition(".")[0]
    return (errors.ParseError, *OF_PACKAGE.get(package, ()), *(kind for kind in known if kind is not None))


def _callable(short: str, function: Callable[..., Any]) -> Callable[[str], object] | None:
    """Return the function as one of a text; None where no parameter is raw, or one has no value."""
    ours = {name: value for name, value in OTHERS.items() if name not in FOREIGN.get(short, ())}
    parameters = [one for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    raw = {
        one.name: RAW[str(one.annotation)] for one in parameters if str(one.annotation) in RAW and one.name not in ours
    }
    if not raw:
        return None
    if any(one.name not in raw and one.name not in ours for one in parameters):
        return None  # `doubtful` reports it
    places = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    names = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]

    def parse(text: str) -> object:
        given = {**ours, **{name: convert(text) for name, convert in raw.items()}}
        return function(*(given[name] for name in places), **{name: given[name] for name in names})

    return parse


def doubtful() -> Iterator[str]:
    """Yield the functions that are no target although a parameter may be foreign: its type has a text, bytes or JSON."""
    known = {target.name for target in targets()} | set(NOT_FOREIGN)
    for module, name, function in functions():
        parameters = inspect.signature(function).parameters.values()
        kinds = [str(one.annotation) for one in parameters if one.default is one.empty and one.name not in OTHERS]
        if short_name(module, name) not in known and any(_TEXT.search(kind) for kind in kinds):
            yield short_name(module, name)


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


def _object(text: str) -> Any:
    found = _json(text)
    return {"text": text, **(found if isinstance(found, dict) else {})}


def _list(text: str) -> Any:
    found = _json(text)
    return found if isinstance(found, list) else [found]


def _answer(text: str) -> Any:
    found = _json(text)
    return found if isinstance(found, dict) else Unreadable("HTTP 500")


def _lines(text: str) -> Any:
    return text.splitlines(keepends=True)


def _bytes(text: str) -> bytes:
    """Return the file's or peer's bytes; those of the corpus as they are, halves of surrogate pairs as such."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


RAW: Mapping[str, Callable[[str], Any]] = {
    "str": str,
    "bytes": _bytes,
    "bytes | str": _bytes,
    "str | bytes": _bytes,
    "Any": _json,
    "Mapping[str, Any]": _object,
    "dict[str, Any]": _object,
    "Iterable[str]": _lines,
    "Sequence[str]": _lines,
    "Iterable[Any]": _list,
    "Sequence[Any]": _list,
    "Answers": _answers,
    "Answer": _answer,
    "Grid": lambda text: text_grid(text, "file"),
}
"""Annotation of a parameter that a peer or a file fills → how it is made of a text."""


MANAGER = "/redfish/v1/Managers/1"
OTHERS: Mapping[str, Any] = {
    "keys": "Oem",
    "zone": UTC,
    "count": 2,
    "file": "file",
    "where": "where",
    "fabric": two_switches(),
    "paths": 2,
    "transaction": 7,
    "address": "192.0.2.1",
    "user": "root",
    "location": "/redfish/v1/TaskService/Tasks/1",
    "path": "/redfish/v1/Systems/1",
    "status": 400,
    "dell": True,
    "limit": 1 << 20,
    "rank": 3,
    "longest": timedelta(days=90),
    "now": datetime(2026, 11, 28, tzinfo=UTC),
    "reader": read_device,
    "what": "device",
    "page": "page",
    "facts": JobFacts(version=1),
    "manager": Resource(MANAGER, {"EthernetInterfaces": {"@odata.id": f"{MANAGER}/EthernetInterfaces"}}),
    "place": Place(),
}
"""Parameter → a value of ours that any text may meet."""
FOREIGN: Mapping[str, tuple[str, ...]] = {
    "host.pci.normal_address": ("address",),
    "redfish.tree.normal": ("path",),
}
"""Function → its parameters that a peer fills although `OTHERS` has a value of that name."""
NOT_FOREIGN: Mapping[str, str] = {
    "documents.read_document": "takes the type of a parser's own document",
    "documents.read_json": "takes the type of a parser's own document",
    "documents.read_value": "takes the type of a parser's own document",
    "documents.reader": "takes the type of a parser's own document",
    "documents.not_understood": "takes an error of a validation",
    "infiniband.common.joined": "takes links that were parsed",
    "netbox.nodes.address_plan": "takes devices that were parsed",
    "netbox.writing.device_body": "writes a request",
    "unified_kernel.unified_kernel": "takes the EFI stub of an image that was built here",
    "redfish.accounts.own_account": "takes the account of the site",
    "site.yaml_document.guard": "takes events of YAML's own parser",
    "slurm_conf.check_settings": "takes settings of the site file, which is validated",
    "wiring.columns.find_columns": "takes rows of a grid",
    "wiring.columns.nearest": "takes rows of a grid",
    "dhcp.discover": "writes a request",
    "slurm_conf.host_lists": "takes the names of the site's own nodes",
    "host.block_devices.below": "names a device of a list that was parsed",
    "netbox.writing.entry_body": "writes a request",
    "netbox.writing.item_body": "writes a request",
    "netbox.writing.marker": "writes a mark of ours",
    "redfish.system.required": "takes a resource that was read",
    "site.yaml_document.validate": "takes a document that was parsed",
    "site.yaml_problems.problems": "takes an error of a validation",
}
"""Function → why none of its parameters is foreign."""
_TREE = "reads a part of a BMC's answers, for read_inventory and others"
WITHOUT_TARGETS: Mapping[str, str] = {
    "documents": "helpers of parsers, whose errors become the parsers' own",
    "host.hardware_errors": "takes lines of the kernel that were parsed",
    "host.netplan": "writes files",
    "host.networkd": "writes files",
    "infiniband.roce": "takes a fabric that was parsed",
    "netbox.nodes": "takes devices that were parsed",
    "netbox.wiring": "takes cables that were parsed",
    "redfish.cooling_power": _TREE,
    "redfish.enclosures": _TREE,
    "redfish.machine": _TREE,
    "redfish.network": _TREE,
    "redfish.parts": _TREE,
    "redfish.processors": _TREE,
    "redfish.services": _TREE,
    "redfish.storage": _TREE,
    "site.yaml_problems": "takes an error of a validation",
    "times": "takes a time",
    "unified_kernel": "takes the EFI stub of an image that was built here",
    "wiring.columns": "takes rows of a grid",
}
"""Module of the formats → why none of its functions is a target."""
PROGRAMS = frozenset({"clusterctl_burnin.node.programs.storage_read", "clusterctl_burnin.node_check.epilog"})
"""Modules with functions of such names that read files and devices by themselves."""
