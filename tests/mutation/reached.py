"""Which tests execute which lines of a module: a mutant is judged by those alone that execute what it changes."""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

AT_IMPORT = ""
"""Stands for the test of a line that is executed outside of tests: it may concern each of them."""


@dataclass(eq=False)
class Recorder:
    """A plugin of pytest that records the lines of the file `path`, in all threads. `lines`: line → tests; `seconds`: of each test."""

    path: str
    lines: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _test: str = AT_IMPORT

    def start(self) -> None:
        threading.settrace(self._called)
        sys.settrace(self._called)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._test = item.nodeid
        try:
            return (yield)
        finally:
            self._test = AT_IMPORT

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def _called(self, frame: FrameType, _event: str, _argument: object) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        self.lines[frame.f_lineno].add(self._test)
        return self._executed

    def _executed(self, frame: FrameType, _event: str, _argument: object) -> Any:
        self.lines[frame.f_lineno].add(self._test)
        return self._executed


@dataclass(frozen=True)
class Reached:
    """What an unchanged run recorded."""

    lines: Mapping[int, Collection[str]]
    seconds: Mapping[str, float]

    def reaching(self, lines: Iterable[int]) -> set[str]:
        return {test for number in lines for test in self.lines.get(number, ())}

    def by(self, lines: Iterable[int]) -> tuple[str, ...]:
        """Return the tests that execute one of these lines, the shortest first; all where one is executed at the import."""
        found = self.reaching(lines)
        return tuple(sorted(self.seconds if AT_IMPORT in found else found, key=lambda test: (self.seconds[test], test)))


def statement_lines(source: ast.AST, line: int) -> range:
    """Return the lines of the innermost statement at a line; of one with a body its head alone."""
    found = range(line, line + 1)
    for node in ast.walk(source):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
            body = getattr(node, "body", None)
            end = max(node.lineno, body[0].lineno - 1) if isinstance(body, list) else node.end_lineno or node.lineno
            if line <= end:
                found = range(node.lineno, end + 1)
    return found


@dataclass(frozen=True)
class Selection:
    """A plugin of pytest that runs these tests alone, in this order."""

    tests: tuple[str, ...]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        place = {test: number for number, test in enumerate(self.tests)}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])
