"""Reinstallation: of what we installed, may touch, and is proven to be the machine; else the reason why not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from clusterctl.fleet.acts import Act, ActResult, Intent
from clusterctl.fleet.decisions.reinstall import check_same, ordered, reinstallable
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.fold import apply
from clusterctl.fleet.node import Drive, Inventory, NodeId, Serial, Stage, Step
from clusterctl.fleet.state import NodeState, OperatorHold
from tests.events import data_of, new_event, written

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DISK = Drive("0", "M.2", 480 * 10**9, Serial("D1"))
SEEN = Inventory("Dell Inc.", "PowerEdge XE9680", Serial("S1"), drives=(DISK,))
NODE = NodeState(
    NodeId("id-n1"),
    name="n1",
    stage=Stage.CONFIGURED,
    serial=Serial("S1"),
    root_disk=Serial("D1"),
    inventory=SEEN,
    intents=(Intent(Act.INSTALL_START, "S1", 1, result=ActResult.DONE),),
)


def happened(state: NodeState, kind: Kind, **data: Any) -> NodeState:
    return apply(state, written(new_event("node", state.id, kind, data), state.last_seq + 1, NOW, "ops"))


@pytest.mark.parametrize("stage", [Stage.INSTALLED, Stage.CONFIGURED, Stage.BURNED_IN, Stage.DISCOVERED])
def test_what_was_installed_may_be_replaced(stage: Stage) -> None:
    """At any stage on its way."""
    reinstallable(replace(NODE, stage=stage), NOW, from_pool=False)


def test_a_quarantined_node_may_be_reinstalled() -> None:
    """Where the step that stopped it came after discover."""
    stopped = replace(NODE, stage=Stage.QUARANTINED, stopped_at=Step.CONFIGURE, cause="no driver")
    reinstallable(stopped, NOW, from_pool=False)
    with pytest.raises(UsageError, match="discover did not pass"):
        reinstallable(replace(stopped, stopped_at=Step.DISCOVER), NOW, from_pool=False)


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (replace(NODE, intents=()), "never installed it"),
        (replace(NODE, serial=None), "not known"),
        (replace(NODE, root_disk=None), "not known"),
        (replace(NODE, stage=Stage.RETIRED), "retired for good"),
        (replace(NODE, hold=OperatorHold("a test", "ann", NOW, None)), "no step may touch it"),
        (replace(NODE, stage=Stage.QUARANTINED, stopped_at=Step.BURNIN, stopped_by="ann", cause="loud"), "ann took it"),
        (replace(NODE, intents=(*NODE.intents, Intent(Act.SETTINGS_BIOS, "BMC", 9))), "settings.bios"),
        (replace(NODE, stage=Stage.GOLD), "it may run a job"),
    ],
)
def test_what_may_not(node: NodeState, why: str) -> None:
    """Each with its reason and what to do about it."""
    with pytest.raises(UsageError, match=why) as caught:
        reinstallable(node, NOW, from_pool=False)
    assert caught.value.remedy


def test_gold_when_ordered() -> None:
    """By --from-pool; a hold still counts."""
    gold = replace(NODE, stage=Stage.GOLD)
    reinstallable(gold, NOW, from_pool=True)
    with pytest.raises(UsageError, match="no step may touch it"):
        reinstallable(replace(gold, hold=OperatorHold("x", "ann", NOW, None)), NOW, from_pool=True)


def test_another_machine_or_without_its_root_disk() -> None:
    """Nothing is given up then; a BMC that reports no drives proves the serial alone."""
    check_same(NODE, SEEN)
    check_same(NODE, replace(SEEN, drives=None))
    with pytest.raises(EdgeError, match="serial S2 answers"):
        check_same(NODE, replace(SEEN, serial=Serial("S2")))
    with pytest.raises(EdgeError, match="D1 is no longer there"):
        check_same(NODE, replace(SEEN, drives=()))


def test_an_order_leads_back_and_is_open_until_the_install_begins() -> None:
    """Out of whatever stopped it; a release in the installer does not carry it out, the start of an install does."""
    stopped = replace(NODE, stage=Stage.QUARANTINED, stopped_at=Step.CONFIGURE, cause="no driver", attempts=2)
    event = ordered(stopped, "new kernel", ())
    state = happened(stopped, event.kind, **data_of(event))
    assert (state.stage, state.cause, state.stopped_at, state.attempts) == (Stage.DISCOVERED, "", None, 0)
    assert state.reinstall == "new kernel"
    state = happened(state, Kind.ACT_INTENDED, act="install.release", target="S1")
    state = happened(state, Kind.ACT_OBSERVED, act="install.release", message="ready")
    assert state.reinstall == "new kernel"
    assert not happened(state, Kind.ACT_INTENDED, act=Act.INSTALL_START, target="S1").reinstall
