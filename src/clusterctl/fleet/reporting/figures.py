"""The figures that checks and loads measured, by metric over the fleet, with the bad ones marked."""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.state import NodeState

_LIMIT = re.compile(r"at (?P<side>least|most) (?P<value>\d+(?:\.\d+)?)$")


@dataclass(frozen=True, slots=True)
class Value:
    """One node's (or part's) figure; `bad` where its finding failed or was not settled."""

    node: str
    subject: str
    value: float
    bad: bool


@dataclass(frozen=True)
class Figure:
    """One metric of one SKU: `values` in ascending order, in `unit`. `expected` is the limit as the findings say it,
    empty where they say several.
    """

    check: str
    sku: str
    unit: str
    expected: str
    values: tuple[Value, ...]

    @cached_property
    def median(self) -> float:
        return statistics.median(value.value for value in self.values)

    @property
    def lowest(self) -> float:
        return self.values[0].value

    @property
    def highest(self) -> float:
        return self.values[-1].value

    @property
    def nodes(self) -> int:
        return len({value.node for value in self.values})

    @property
    def limit(self) -> float | None:
        """The figure in `expected`, where it is one bound (`at least 380`)."""
        match = _LIMIT.match(self.expected)
        return float(match["value"]) if match else None

    @property
    def bad(self) -> tuple[Value, ...]:
        """The farthest from the median first."""
        found = [value for value in self.values if value.bad]
        return tuple(
            sorted(found, key=lambda v: (-abs(v.value - self.median), natural_key(v.node), natural_key(v.subject)))
        )


def figures(nodes: Iterable[NodeState]) -> tuple[Figure, ...]:
    """By check, SKU and unit, of the last report of each step: what has a number and a unit."""
    values: dict[tuple[str, str, str], list[Value]] = defaultdict(list)
    expected: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for node in nodes:
        for finding, number in _measured(node):
            key = (finding.check, node.sku, finding.unit)
            bad = not finding.verdict.admits
            values[key].append(Value(node.name, finding.subject, number, bad))
            expected[key].add(finding.expected)
    return tuple(
        Figure(*key, _one(expected[key]), tuple(sorted(found, key=lambda v: (v.value, natural_key(v.node)))))
        for key, found in sorted(values.items())
    )


def _measured(node: NodeState) -> Iterator[tuple[Finding, float]]:
    for report in node.reports.values():
        for finding in report.findings:
            if finding.unit and finding.measured and finding.verdict is not Verdict.NOT_APPLICABLE:
                number = _number(finding.measured)
                if number is not None:
                    yield finding, number


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _one(said: set[str]) -> str:
    return next(iter(said)) if len(said) == 1 else ""
