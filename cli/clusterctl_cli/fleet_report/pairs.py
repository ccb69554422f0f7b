"""The pairs' part of a fleet report."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.cabling.pictures.matrix import Matrix, Pair, PairTrial, matrix
from clusterctl.operations.reports import PairReadings
from clusterctl_burnin.recordings.pair_figures import PairFigure


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


def pairs(found: PairReadings) -> Pairs | None:
    """Return the matrix of what was measured; None where nothing was."""
    if not found.figures:
        return None
    slowest: dict[tuple[str, str], float] = {}
    for one in found.figures:
        key = (one.source, one.target)
        slowest[key] = min(one.value, slowest.get(key, one.value))
    drawn = tuple(Pair.model_validate({"from": a, "to": b, "value": value}) for (a, b), value in slowest.items())
    slow = sorted((one for one in found.figures if one.value < found.at_least), key=lambda one: one.value)
    square = matrix(PairTrial(at_least=found.at_least, pairs=drawn))
    return Pairs(square, tuple(slow), found.at_least, len(found.figures), found.unread, found.whole)
