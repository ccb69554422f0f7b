"""Which machines may be set."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from clusterctl.fleet.acts import Act, Intent
from clusterctl.fleet.decisions.permissions import settings_permitted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId, Serial, Stage, Step
from clusterctl.fleet.state import NodeState, OperatorHold

NOW = datetime(2026, 5, 1, tzinfo=UTC)
HOLD = OperatorHold("why", "alice", NOW, None)
NODE = NodeState(NodeId("id-n1"), "n1", stage=Stage.DISCOVERED, serial=Serial("S1"))


@pytest.mark.parametrize(
    "node",
    [
        NODE,
        replace(NODE, stage=Stage.QUARANTINED),
        replace(NODE, stage=Stage.GOLD, hold=HOLD),
        replace(NODE, stage=Stage.CABLED, hold=HOLD),
        replace(NODE, stage=Stage.CABLED, stopped_at=Step.BURNIN),
        replace(NODE, intents=(Intent(Act.SETTINGS_FIRMWARE, "S1", 7),)),
    ],
)
def test_nodes_that_may_be_changed(node: NodeState) -> None:
    """Not installed yet, quarantined, held by an operator, or begun by ourselves."""
    assert settings_permitted(node, NOW, from_pool=False) == "S1"


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (replace(NODE, serial=None), "its serial is not known"),
        (replace(NODE, stage=Stage.GOLD), "it may run a job"),
        (replace(NODE, stage=Stage.CABLED), "on its way to the next step"),
        (replace(NODE, stage=Stage.INSTALLED), "on its way to the next step"),
        (replace(NODE, stage=Stage.RETIRED), "retired for good"),
        (replace(NODE, intents=(Intent(Act.INSTALL_START, "S1", 7),)), "was begun on it"),
        (replace(NODE, hold=HOLD, intents=(Intent(Act.RETIRE_ERASE, "S1", 7),)), "was begun on it"),
    ],
)
def test_nodes_that_may_not_be_changed(node: NodeState, expected: str) -> None:
    """Busy, unknown, retired, or in the middle of something else, whichever run holds it."""
    with pytest.raises(UsageError, match=expected):
        settings_permitted(node, NOW, from_pool=False)


def test_from_the_pool_by_a_word_of_its_own() -> None:
    """Gold goes only where the operator orders it."""
    assert settings_permitted(replace(NODE, stage=Stage.GOLD), NOW, from_pool=True) == "S1"
