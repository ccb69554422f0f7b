"""Judges mutants of functions in forks of one session of pytest: modules and tests are imported once for all of them.

What a module does at its import cannot be changed afterwards: such a mutant is left to `campaign`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeAlias

import pytest

from tests.mutation.reached import AT_IMPORT, Reached, Recorder

HUNG = 3
"""Exit status for a mutant whose tests do not end: killed."""
HANGS_S = 30
"""Seconds after which a test hangs, beyond five times what it took on the module as it is: its mutant is killed."""
OPTIMIZED = 0x1
"""Flag of the code of a function; that of a class or a module has it not."""


Functions: TypeAlias = dict[tuple[str, int], list[FunctionType]]
"""The functions of a file that exist in this process, by `key`."""
Changed: TypeAlias = Sequence[tuple[list[FunctionType], CodeType]]


class AtImportError(Exception):
    """The mutant changes what the module does at its import."""


@dataclass(eq=False)
class Session:
    """A plugin of pytest in whose loop the mutants are judged.

    survived  is called with the number of each mutant that survives
    statuses  of each that was run; `left` are those of the import
    """

    path: str
    codes: Sequence[tuple[CodeType, range]]
    until: float
    recorder: Recorder
    survived: Callable[[int], None]
    reached: Reached = field(default_factory=lambda: Reached({}, {}))
    statuses: dict[int, int] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)
    sound: bool = False
    _judging: bool = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            return False
        status, written = self._forked(session.items, 3600)
        sys.settrace(None)
        self.sound = status == 0
        if self.sound:
            self.reached = Reached(*pickle.loads(written))
            self._judge_all(
                compile(Path(self.path).read_text(), self.path, "exec"), {item.nodeid: item for item in session.items}
            )
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._judging and report.failed:
            print(report.longreprtext, flush=True)  # where a mutant runs, this goes nowhere
            os._exit(1)

    def _judge_all(self, original: CodeType, items: dict[str, pytest.Item]) -> None:
        functions = _functions(self.path)
        for number, (code, lines) in enumerate(self.codes):
            if time.monotonic() > self.until:
                return
            changed = self._changed(functions, original, code, lines)
            if not changed:
                self.left.append(number)
                continue
            tests = self.reached.by(lines)
            limit_s = 60 + 10 * sum(self.reached.seconds[test] for test in tests)
            self.statuses[number] = self._forked([items[test] for test in tests], limit_s, changed)[0] if tests else 0
            if self.statuses[number] == 0:
                self.survived(number)

    def _changed(self, functions: Functions, original: CodeType, code: CodeType, lines: range) -> Changed:
        """Return the functions that a mutant changes, each with its new code; none where it changes the import."""
        if AT_IMPORT in self.reached.reaching(lines):
            return []
        try:
            pairs = list(differing(original, code))
        except AtImportError:
            return []
        return [(functions[key(one)], other) for one, other in pairs if key(one) in functions]

    def _forked(
        self,
        items: Sequence[pytest.Item],
        limit_s: float,
        changed: Changed | None = None,
    ) -> tuple[int, bytes]:
        """Run tests in a fork, on changed functions where given; return its status and what it recorded."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.close(reading)
            try:
                self._run(items, changed)
                if changed is None:
                    sys.settrace(None)
                    with os.fdopen(writing, "wb") as pipe:
                        pickle.dump((dict(self.recorder.lines), dict(self.recorder.seconds)), pipe)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - SystemExit included: a mutant may raise anything
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            written = pipe.read() if changed is None else b""
        return ended(child, limit_s), written

    def _run(self, items: Sequence[pytest.Item], changed: Changed | None) -> None:
        self._judging = True
        if changed is not None:
            quiet()
        for functions, code in changed or ():
            for function in functions:
                function.__code__ = code
        for item, following in zip(items, [*items[1:], None], strict=True):
            if changed is not None:
                faulthandler.dump_traceback_later(HANGS_S + 5 * self.reached.seconds[item.nodeid], exit=True)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def differing(original: CodeType, changed: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the functions whose code differs, with those inside them. Raises `AtImportError` where other code does."""
    if original.co_code != changed.co_code or len(original.co_consts) != len(changed.co_consts):
        raise AtImportError
    for one, other in zip(original.co_consts, changed.co_consts, strict=True):
        if isinstance(one, CodeType) and isinstance(other, CodeType):
            if one.co_flags & OPTIMIZED:
                yield from _of_function(one, other)
            elif one != other:
                yield from differing(one, other)
        elif type(one) is not type(other) or one != other:
            raise AtImportError


def _of_function(one: CodeType, other: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    if one == other:
        return
    yield one, other
    inner = {key(code): code for code in other.co_consts if isinstance(code, CodeType)}
    for code in one.co_consts:
        if isinstance(code, CodeType) and key(code) in inner:
            yield from _of_function(code, inner[key(code)])


def ended(child: int, limit_s: float) -> int:
    """Return the exit status of a process that leads a group; end the group where it does not end in time."""
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


def quiet() -> None:
    """Let what this process prints go nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)


def _functions(path: str) -> Functions:
    """Return the functions of a file that exist in this process, by their name and line."""
    found: Functions = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename == path:
            found.setdefault(key(one.__code__), []).append(one)
    return found


def key(code: CodeType) -> tuple[str, int]:
    """Return what identifies a function within a file."""
    return code.co_qualname, code.co_firstlineno
