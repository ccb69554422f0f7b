"""All that a fleet report shows, and the pairs' part of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.node import Stage
from clusterctl.fleet.reporting.figures import Figure
from clusterctl.fleet.state import NodeState
from clusterctl_burnin.recordings.pair_figures import PairFigure
from clusterctl_cli.acceptance import Standing
from clusterctl_cli.fleet_report.case import Case
from clusterctl_cli.pictures.matrix import Matrix, Pair, Trial, matrix


@dataclass(frozen=True, slots=True)
class Pairs:
    """`matrix` of the slowest rail of each pair; `slow` are rails below `at_least` (Gb/s), the slowest first;
    `unread`: how many pieces of evidence were left unread, `whole` is False where only bad nodes' were read.
    """

    matrix: Matrix
    slow: tuple[PairFigure, ...]
    at_least: float
    measured: int
    unread: int
    whole: bool


@dataclass(frozen=True, slots=True)
class FleetSheet:
    """`cases` in the order in which somebody walks; `omitted`: stopped nodes beyond them."""

    standing: Standing
    nodes: tuple[NodeState, ...]
    cases: tuple[Case, ...]
    omitted: int
    figures: tuple[Figure, ...]
    pairs: Pairs | None

    @property
    def gold(self) -> int:
        return sum(node.in_pool(self.standing.now) for node in self.nodes)

    @property
    def stopped(self) -> int:
        return len(self.cases) + self.omitted

    @property
    def held(self) -> int:
        return sum(node.held(self.standing.now) and node.stopped_at is None for node in self.nodes)

    @property
    def retired(self) -> int:
        return sum(node.stage is Stage.RETIRED for node in self.nodes)

    @property
    def under_way(self) -> int:
        return len(self.nodes) - self.gold - self.stopped - self.held - self.retired


def pairs(found: Iterable[PairFigure], at_least: float, unread: int, *, whole: bool) -> Pairs | None:
    """None where nothing was measured."""
    measured = tuple(found)
    if not measured:
        return None
    slowest: dict[tuple[str, str], float] = {}
    for one in measured:
        key = (one.source, one.target)
        slowest[key] = min(one.value, slowest.get(key, one.value))
    drawn = tuple(Pair.model_validate({"from": a, "to": b, "value": value}) for (a, b), value in slowest.items())
    slow = sorted((one for one in measured if one.value < at_least), key=lambda one: one.value)
    square = matrix(Trial(at_least=at_least, pairs=drawn))
    return Pairs(square, tuple(slow), at_least, len(measured), unread, whole)
