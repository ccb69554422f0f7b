"""Lines of logs explained: what each means, which layer it blames, what to do."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.peer_text import visible_line
from clusterctl.jobs.kernel_lines import from_kernel, kernel_meaning
from clusterctl.jobs.line_rules import shipped_lines
from clusterctl.jobs.meaning import MAX_LINE, Meaning


def explain(line: str) -> Meaning | None:
    """Return what a line of whatever log means; None where no rule knows it.

    A line in the form of a kernel log is read by the kernel's rules alone: text of programs is wrong there.
    """
    if from_kernel(line):
        return kernel_meaning(line)
    return shipped_lines().meaning(line) or kernel_meaning(line)


MAX_KINDS = 1000
"""Kinds of lines that are explained: a log may hold any number."""
_REMEMBERED = 20_000
"""Kinds of lines without a meaning, and lines with one, that are not looked at again."""
_DIGITS = str.maketrans("023456789", "1" * 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedLine:
    """One kind of line: the first of them, and how many mean the same and name the same parts."""

    line: str
    meaning: Meaning
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainResult:
    """The kinds in the order of their first line; `unknown`: lines that no rule knows."""

    lines: tuple[ExplainedLine, ...]
    unknown: int

    @property
    def exit_code(self) -> int:
        """0: at least one line is known."""
        return 0 if self.lines else 1


def run(lines: Iterable[str]) -> ExplainResult:
    """Explain lines of whatever logs; what has no text is left out."""
    first: dict[tuple[str, frozenset[tuple[str, str]]], tuple[str, Meaning]] = {}
    times: Counter[tuple[str, frozenset[tuple[str, str]]]] = Counter()
    unknown = 0
    without: set[str] = set()
    meaning_of = functools.lru_cache(_REMEMBERED)(explain)
    for line in lines:
        if not line.strip():
            continue
        kind = line.translate(_DIGITS)
        meaning = None if kind in without else meaning_of(line)
        if meaning is None:
            unknown += 1
            if len(without) < _REMEMBERED:
                without.add(kind)
            continue
        key = (meaning.rule, frozenset(meaning.parts.items()))
        if key in first or len(first) < MAX_KINDS:
            first.setdefault(key, (visible_line(line.strip(), MAX_LINE), meaning))
            times[key] += 1
    return ExplainResult(
        lines=tuple(
            ExplainedLine(line=line, meaning=meaning, times=times[key]) for key, (line, meaning) in first.items()
        ),
        unknown=unknown,
    )
