"""The result of a group's training, as rank 0 of the node's `torch-group` prints it: one line of JSON."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Count, Figure, Within, read_document

_LINE = re.compile(r"^# Training (\{.*\})$", re.MULTILINE)
_WHERE = "torch-group"


@dataclass(frozen=True, slots=True)
class RankTime:
    """Milliseconds a step, means over the training.

    own_ms   the rank's own work: forward, backward and the optimizer, which no other rank delays
    wait_ms  until the gradients of all ranks are summed: the wait for the slowest rank, and the sum itself
    """

    own_ms: Annotated[float, Within(gt=0, allow_inf_nan=False)]
    wait_ms: Figure

    @property
    def step_ms(self) -> float:
        return self.own_ms + self.wait_ms


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """Measured steps, bytes of the gradients that are summed in each, and the times of each rank by its number."""

    steps: Count
    gradient_bytes: Count
    ranks: Annotated[tuple[RankTime, ...], Within(min_length=1)]

    @property
    def sum_ms(self) -> float:
        """Milliseconds of the sum itself: the slowest rank waits for no other."""
        return min(rank.wait_ms for rank in self.ranks)


def parse_training(text: str) -> TrainingResult:
    """Return the result. Raise `ParseError` where the text has none, or several."""
    found = _LINE.findall(text)
    if len(found) != 1:
        raise ParseError(f"{len(found)} results of a training in it, not one", where=_WHERE)
    return read_document(TrainingResult, found[0], _WHERE)
