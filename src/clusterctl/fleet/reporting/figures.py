"""The figures that checks and loads measured, by metric over the fleet, with the bad ones marked."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.quantity import Bound, Quantity
from clusterctl.fleet.state import NodeState


@dataclass(frozen=True, slots=True)
class Value:
    """One node's (or part's) figure; `bad` where its finding failed or was not settled. A figure that no limit judges
    is not bad.
    """

    node: str
    subject: str
    value: float
    bad: bool


@dataclass(frozen=True)
class ReportFigure:
    """One metric of one SKU: `values` in ascending order, in `unit`. `bound` is what the findings hold them against;
    None where they have none, or several.
    """

    check: str
    sku: str
    unit: str
    bound: Bound | None
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
        """The figure of the bound, where it has one side (`at least 380`)."""
        if self.bound is None or None not in (self.bound.low, self.bound.high):
            return None
        return self.bound.high if self.bound.low is None else self.bound.low

    @property
    def bad(self) -> tuple[Value, ...]:
        """The farthest from the median first."""
        found = [value for value in self.values if value.bad]
        return tuple(
            sorted(found, key=lambda v: (-abs(v.value - self.median), natural_key(v.node), natural_key(v.subject)))
        )


def figures(nodes: Iterable[NodeState]) -> tuple[ReportFigure, ...]:
    """Return the figures by check, SKU and unit, of the last report of each step: what has a number and a unit."""
    values: dict[tuple[str, str, str], list[Value]] = defaultdict(list)
    bounds: dict[tuple[str, str, str], set[Bound | str | None]] = defaultdict(set)
    for node in nodes:
        for finding, measured in _measured(node):
            key = (finding.check, node.sku, measured.unit)
            bad = not finding.verdict.admits and finding.code is not Code.NO_LIMIT
            values[key].append(Value(node.name, finding.subject, measured.value, bad))
            bounds[key].add(finding.expected)
    return tuple(
        ReportFigure(*key, _one(bounds[key]), tuple(sorted(found, key=lambda v: (v.value, natural_key(v.node)))))
        for key, found in sorted(values.items())
    )


def _measured(node: NodeState) -> Iterator[tuple[Finding, Quantity]]:
    for report in node.reports.values():
        for finding in report.findings:
            measured = finding.measured
            applies = finding.verdict is not Verdict.NOT_APPLICABLE
            if applies and isinstance(measured, Quantity) and measured.unit and math.isfinite(measured.value):
                yield finding, measured


def _one(bounds: set[Bound | str | None]) -> Bound | None:
    only = next(iter(bounds)) if len(bounds) == 1 else None
    return only if isinstance(only, Bound) else None
