"""Who may be set, who goes together, and when it stops."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId, Serial, Stage, Step
from clusterctl.fleet.settings.plan import permitted, stops, waves
from clusterctl.fleet.state import NodeState, OpenAct, OperatorHold

NOW = datetime(2026, 5, 1, tzinfo=UTC)
HOLD = OperatorHold("why", "alice", NOW, None)
NODE = NodeState(NodeId("id-n1"), "n1", stage=Stage.DISCOVERED, serial=Serial("S1"))
fleets = st.lists(st.sampled_from(["a", "b", "c"]), max_size=40).map(
    lambda skus: [(f"n{at}", sku) for at, sku in enumerate(skus)]
)


@pytest.mark.parametrize(
    "node",
    [
        NODE,
        replace(NODE, stage=Stage.QUARANTINED),
        replace(NODE, stage=Stage.GOLD, hold=HOLD),
        replace(NODE, stage=Stage.CABLED, hold=HOLD),
        replace(NODE, stage=Stage.CABLED, stopped_at=Step.BURNIN),
        replace(NODE, open_acts=(OpenAct("settings.firmware", "S1", 7),)),
    ],
)
def test_who_may(node: NodeState) -> None:
    """Not installed yet, quarantined, held by anybody, or begun by ourselves."""
    assert permitted(node, NOW, from_pool=False) == "S1"


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (replace(NODE, serial=None), "its serial is not known"),
        (replace(NODE, stage=Stage.GOLD), "somebody may be working on it"),
        (replace(NODE, stage=Stage.CABLED), "on its way to the next step"),
        (replace(NODE, stage=Stage.INSTALLED), "on its way to the next step"),
        (replace(NODE, stage=Stage.RETIRED), "out of the site's life"),
        (replace(NODE, open_acts=(OpenAct("start_install", "S1", 7),)), "something was begun on it"),
        (replace(NODE, hold=HOLD, open_acts=(OpenAct("erase", "S1", 7),)), "something was begun on it"),
    ],
)
def test_who_may_not(node: NodeState, says: str) -> None:
    """Busy, unknown, retired, or amid something else, whoever holds it."""
    with pytest.raises(UsageError, match=says):
        permitted(node, NOW, from_pool=False)


def test_from_the_pool_by_a_word_of_its_own() -> None:
    """Gold goes only where the person says so."""
    assert permitted(replace(NODE, stage=Stage.GOLD), NOW, from_pool=True) == "S1"


@given(fleets, st.integers(1, 8))
def test_waves_hold_each_once(nodes: list[tuple[str, str]], size: int) -> None:
    """Nobody twice, nobody left out; one of each SKU first and alone; no wave larger than was said."""
    made = waves(nodes, size)
    flat = [name for wave in made for name in wave]
    assert sorted(flat) == sorted(name for name, _ in nodes)
    skus = dict(nodes)
    canaries = len(set(skus.values()))
    assert all(len(wave) == 1 for wave in made[:canaries])
    assert {skus[wave[0]] for wave in made[:canaries]} == set(skus.values())
    assert all(1 <= len(wave) <= size for wave in made)


@given(fleets, st.integers(1, 8), st.integers(0, 5), st.data())
def test_failures_are_bounded(nodes: list[tuple[str, str]], size: int, most: int, data: st.DataObject) -> None:
    """Whoever fails: never more than are borne and one wave; after a canary's failure nobody else is touched."""
    made = waves(nodes, size)
    canaries = len({sku for _, sku in nodes})
    failures = touched = 0
    for number, wave in enumerate(made):
        touched += 1
        failed = data.draw(st.integers(0, len(wave)))
        failures += failed
        if stops(number, canaries, failures, most):
            break
        assert number >= canaries or failed == 0
    assert failures <= most + size
    if touched < len(made):
        assert stops(touched - 1, canaries, failures, most)
