"""Runs a module's tests on each of its mutants: a fork each, in which the module is imported changed.

Everything that does not import the module is loaded once, before the forks: a mutant costs its tests, not their
imports. Of the tests those run that execute the changed statement, the shortest first. A module that registers functions or builds tables at its import is judged, too.
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
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

import grimp
import pytest

from tests.mutation.mutants import Mutant, mutants
from tests.mutation.reached import Reached, Recorder, Selection
from tests.mutation.targets import Target
from tests.paths import ROOT

PACKAGES = ("clusterctl", "clusterctl_burnin", "clusterctl_cli")
WANTED = 0.95
"""Share of the mutants that must be killed."""
HUNG = 3
"""Exit status for a mutant whose tests do not end: killed."""


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
    took, loaded, reached = _unchanged(target)
    _preload(target.module, loaded)
    outcome, named = Outcome(target), {mutant.name for mutant in every}
    outcome.unused = tuple(name for name in target.equivalent if name not in named)
    random.Random(0).shuffle(every)
    for mutant in every:
        if mutant.name in target.equivalent:
            outcome.equivalent += 1
        elif time.monotonic() > until:
            outcome.not_run += 1
        elif _run(target, mutant.code, reached.by(mutant.line, source), 30 + 10 * took) == 0:
            outcome.survivors.append(mutant)
            report(f"  survives, line {mutant.line}: {mutant.name}")
        else:
            outcome.killed += 1
    return outcome


def _unchanged(target: Target) -> tuple[float, list[str], Reached]:
    """Return the seconds that the tests take on the module as it is, the modules that they import, and the lines that they reach."""
    reading, writing = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        recorder = Recorder(str(ROOT / target.path))
        recorder.start()
        status = _tests(target.pytest_arguments, recorder, quiet=False)
        sys.settrace(None)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump((list(sys.modules), dict(recorder.lines), dict(recorder.seconds)), pipe)
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        pytest.fail(f"the tests of {target.path} fail on the module as it is")
    loaded, lines, seconds = pickle.loads(content)
    return time.monotonic() - begun, loaded, Reached(lines, seconds)


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


def _run(target: Target, code: CodeType, tests: tuple[str, ...], limit_s: float) -> int:
    """Return the exit status of some tests on a mutant: 0 where it survives, as it does where no test executes it."""
    if not tests:
        return 0
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        sys.meta_path.insert(0, _Changed(target.module, ROOT / target.path, code))
        files = {test.partition("::")[0] for test in tests}
        os._exit(_tests(sorted(files), Selection(tests), quiet=True))
    end = time.monotonic() + limit_s
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return HUNG
        time.sleep(0.01)


def _tests(tests: Sequence[str], plugin: object, *, quiet: bool) -> int:
    """Run tests in this process until one fails; return pytest's exit status, 1 for every exception."""
    if quiet:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
    try:
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not soak and not lab", *tests], [plugin]))
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
