"""Runs a module's tests on each of its mutants, in a fork each. Those run that execute the changed statement, the shortest first.

A function is changed in place, in a fork of a session of pytest that has imported everything (`in_place`). A mutant of what
the module does at its import, such as a table, is imported again; everything that does not import the module is loaded before.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.abc
import importlib.util
import os
import pickle
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

import grimp
import pytest

from tests.mutation.in_place import Session, ended, quiet
from tests.mutation.mutants import Mutant, mutants
from tests.mutation.reached import Reached, Recorder, Selection, statement_lines
from tests.mutation.targets import Target
from tests.paths import ROOT

PACKAGES = ("clusterctl", "clusterctl_burnin", "clusterctl_cli")
WANTED = 0.95
"""Share of the mutants that must be killed."""
LIMIT_S = 900.0
"""Seconds for the tests of a mutant that is imported again; one whose tests do not end is killed."""


@dataclass
class Outcome:
    """What became of a target's mutants. `unused`: listed equivalents that are no mutant any more."""

    target: Target
    killed: int = 0
    equivalent: int = 0
    survivors: list[Mutant] = field(default_factory=list)
    not_run: int = 0
    unused: tuple[str, ...] = ()

    @property
    def judged(self) -> int:
        return self.killed + len(self.survivors)

    @property
    def missed(self) -> bool:
        """Whether so many survive that the wanted share cannot be reached, whatever becomes of those that were not run."""
        return len(self.survivors) > (1 - WANTED) * (self.judged + self.not_run)

    @property
    def failed(self) -> bool:
        return bool(self.unused) or (self.missed and self.target.held)

    @property
    def row(self) -> str:
        share = f" ({self.killed / self.judged:.1%})" if self.judged else ""
        figures = f"{self.killed} of {self.judged} killed{share}"
        wanted = f"; {WANTED:.0%} not reached" if self.missed else ""
        return f"{self.target.path}: {figures}, {self.equivalent} equivalent, {self.not_run} not run{wanted}"


def campaign(target: Target, seconds: float, report: Callable[[str], None]) -> Outcome:
    """Return the outcome of a target's mutants. They run in a mixed order; after `seconds` none is begun."""
    until = time.monotonic() + seconds
    path = ROOT / target.path
    every, source = list(mutants(path.read_text(), str(path))), ast.parse(path.read_text())
    outcome, named = Outcome(target), {mutant.name for mutant in every}
    outcome.unused = tuple(name for name in target.equivalent if name not in named)
    random.Random(0).shuffle(every)
    judged = [mutant for mutant in every if mutant.name not in target.equivalent]
    outcome.equivalent = len(every) - len(judged)
    lines = [statement_lines(source, mutant.line) for mutant in judged]

    def survived(number: int) -> None:
        report(f"  survives, line {judged[number].line}: {judged[number].name}")

    codes = [(mutant.code, at) for mutant, at in zip(judged, lines, strict=True)]
    in_place = _in_place(target, codes, until, survived)
    statuses = dict(in_place.statuses)
    _preload(target.module, in_place.loaded)
    for number in in_place.left:
        if time.monotonic() < until:
            statuses[number] = _run(target, judged[number].code, in_place.reached.by(lines[number]))
            if statuses[number] == 0:
                survived(number)
    outcome.survivors = [judged[number] for number, status in statuses.items() if status == 0]
    outcome.killed = len(statuses) - len(outcome.survivors)
    outcome.not_run = len(judged) - outcome.judged
    return outcome


@dataclass(frozen=True)
class _InPlace:
    """What one session of pytest found. `left`: the mutants that it could not judge; `loaded`: the modules that it imported."""

    statuses: Mapping[int, int]
    left: Sequence[int]
    reached: Reached
    loaded: Sequence[str]


def _in_place(
    target: Target, codes: Sequence[tuple[CodeType, range]], until: float, survived: Callable[[int], None]
) -> _InPlace:
    """Judge in a process of its own what can be changed after the import."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        path = str(ROOT / target.path)
        recorder = Recorder(path)
        session = Session(path, codes, until, recorder, survived)
        recorder.start()
        _tests(target.pytest_arguments, recorder, session)
        found = _InPlace(session.statuses, session.left, session.reached, list(sys.modules))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0 if session.sound else 1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        pytest.fail(f"the tests of {target.path} fail on the module as it is")
    found = pickle.loads(content)
    assert isinstance(found, _InPlace)
    return found


def _preload(module: str, loaded: Sequence[str]) -> None:
    """Import what the tests import, but the module, all that imports it, and the tests."""
    graph = grimp.build_graph(*PACKAGES)
    changed = {module, *graph.find_downstream_modules(module)}
    for name in loaded:
        parents = {name.rsplit(".", n)[0] for n in range(name.count(".") + 1)}
        if name.split(".")[0] in {"tests", "__main__", "conftest"} or parents & changed:
            continue
        with contextlib.suppress(ImportError, ValueError, AttributeError):
            importlib.import_module(name)
    if module in sys.modules:
        pytest.fail(f"{module} is imported already: run each target in a process of its own")


def _run(target: Target, code: CodeType, tests: tuple[str, ...]) -> int:
    """Return the exit status of tests on a mutant that is imported again: 0 where it survives, as it does where no test executes it."""
    if not tests:
        return 0
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        quiet()
        sys.meta_path.insert(0, _Changed(target.module, ROOT / target.path, code))
        os._exit(_tests(sorted({test.partition("::")[0] for test in tests}), Selection(tests)))
    return ended(child, LIMIT_S)


def _tests(tests: Sequence[str], *plugins: object) -> int:
    """Run tests in this process until one fails; return pytest's exit status, 1 for every exception."""
    arguments = ["-x", "-q", "-s", "-p", "no:cacheprovider", "-m", "not soak and not lab", *tests]
    try:
        return int(pytest.main(arguments, [*plugins]))
    except BaseException:  # noqa: BLE001 - SystemExit included: a mutant may raise anything
        return 1


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from other code."""

    def __init__(self, module: str, path: Path, code: CodeType) -> None:
        self._module, self._path, self._code = module, path, code

    def find_spec(self, fullname: str, _path: object, _target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, module.__dict__)
