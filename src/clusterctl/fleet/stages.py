"""The life of a node as one table: which move leads from which stage to which. The fold and all permissions use it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from clusterctl.fleet.errors import ConflictError
from clusterctl.fleet.node import PATH, Stage, Step


class Move(enum.Enum):
    """What can happen to a node. The gate decides the first three; QUARANTINE and all others are operators' decisions.

    ADVANCE     the gate lets the node pass a step
    STOP        the gate leaves the node before a step
    QUARANTINE  the gate or an operator takes the node out
    RELEASE     a stopped node goes back before the step that stopped it
    REVALIDATE  the node repeats its steps from one on
    REINSTALL   the node gets its OS again
    MERGE       another machine is this node from now on
    RETIRE      the node is out of the site for good
    """

    ADVANCE = "advance"
    STOP = "stop"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    REVALIDATE = "revalidate"
    REINSTALL = "reinstall"
    MERGE = "merge"
    RETIRE = "retire"


BEFORE: Mapping[Step, Stage] = dict(zip(Step, PATH, strict=False))
"""The stage in which a node stands before each step."""


def _moves(position: int) -> dict[Move, frozenset[Stage]]:
    """Return the moves of the stage at `position` of the path to gold."""
    stage, gold = PATH[position], len(PATH) - 1
    moves = {
        Move.QUARANTINE: frozenset({Stage.QUARANTINED}),
        Move.REVALIDATE: frozenset(PATH[: min(position, gold - 2) + 1]),
        Move.MERGE: frozenset({Stage.SEEN}),
        Move.RETIRE: frozenset({Stage.RETIRED}),
    }
    if position < gold:
        moves |= {Move.ADVANCE: frozenset({PATH[position + 1]})}
        moves |= {Move.STOP: frozenset({stage}), Move.RELEASE: frozenset({stage})}
    if position > PATH.index(Stage.SEEN):
        moves |= {Move.REINSTALL: frozenset({Stage.DISCOVERED})}
    return moves


TABLE: Mapping[Stage, Mapping[Move, frozenset[Stage]]] = {
    **{stage: _moves(position) for position, stage in enumerate(PATH)},
    Stage.QUARANTINED: {
        Move.QUARANTINE: frozenset({Stage.QUARANTINED}),
        Move.RELEASE: frozenset(BEFORE.values()),
        Move.REVALIDATE: frozenset(PATH[:-2]),
        Move.REINSTALL: frozenset({Stage.DISCOVERED}),
        Move.MERGE: frozenset({Stage.SEEN}),
        Move.RETIRE: frozenset({Stage.RETIRED}),
    },
    Stage.RETIRED: {},
}
"""Stage → move → the stages to which it may lead. What is not here is not possible."""


def possible(stage: Stage, move: Move) -> bool:
    """Return whether a node at this stage may move so at all."""
    return move in TABLE[stage]


def require(stage: Stage, move: Move, to: Stage, where: str) -> None:
    """Raise `ConflictError` unless the table has this move: the decision was made for another stage than this."""
    if to not in TABLE[stage].get(move, frozenset()):
        raise ConflictError(
            f"a node that is {stage.value} cannot {move.value} to {to.value}: its stage has changed meanwhile",
            where=where,
            remedy="run the command again: it reads the node's stage again",
        )
