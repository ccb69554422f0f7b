"""A relocation voids exactly what it touches, and takes nothing from the node's history."""

from __future__ import annotations

import pytest

from clusterctl.fleet.acts import PlaceDetails
from clusterctl.fleet.decisions.relocate import changes, first_step, relocatable, relocated
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import node_event
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.payloads.decisions import HoldSet
from clusterctl.fleet.payloads.node import NodeDescribed
from tests.fleet.people import NOW, after, node, stopped

WAS = PlaceDetails(name="n1", bmc="10.0.0.1", rack="A01", unit=4, readdressed=False)


def now(name: str = "n1", bmc: str = "10.0.0.1", rack: str = "A01", unit: int = 4) -> NodeDescribed:
    return NodeDescribed(name=name, bmc=bmc, rack=rack, unit=unit)


@pytest.mark.parametrize(
    ("wanted", "readdressed", "step", "words"),
    [
        (now(), False, None, ()),
        (now(rack="B02", unit=9), False, Step.CABLE, ("rack A01 U4 → rack B02 U9",)),
        (now(name="x1"), False, Step.CONFIGURE, ("name n1 → x1",)),
        (now(name="x1"), True, Step.INSTALL, ("name n1 → x1", "other addresses of its host")),
        (
            now(bmc="10.0.9.1", rack="B02"),
            False,
            Step.DISCOVER,
            ("rack A01 U4 → rack B02 U4", "BMC 10.0.0.1 → 10.0.9.1"),
        ),
    ],
)
def test_the_earliest_step_that_is_touched(
    wanted: NodeDescribed, readdressed: bool, step: Step | None, words: tuple[str, ...]
) -> None:
    """A BMC's address is proven by discover, a host's by install, a name set by configure, cables by cable."""
    was = PlaceDetails(name="n1", bmc="10.0.0.1", rack="A01", unit=4, readdressed=readdressed)
    assert first_step(node(Stage.GOLD), was, wanted) is step
    assert changes(was, wanted) == words


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (Stage.SEEN, Stage.SEEN),
        (Stage.CONFIGURED, Stage.CONFIGURED),
        (Stage.CABLED, Stage.CONFIGURED),
        (Stage.GOLD, Stage.CONFIGURED),
    ],
)
def test_no_step_counts_that_was_not_taken(stage: Stage, expected: Stage) -> None:
    """A node that never was cabled stays where it is; every later one is before its cables again."""
    moved = after(node(stage), relocated(node(stage), WAS, now(rack="B02"), "a new hall", ()))
    assert (moved.stage, moved.location.rack) == (expected, "B02")


def test_a_node_of_a_rolling_change_keeps_its_name() -> None:
    """The plan names its nodes: it is left to finish with this one."""
    held = after(node(Stage.GOLD), [node_event(node().id, HoldSet(reason="kernel", plan="kernel-6.8"))])
    with pytest.raises(UsageError, match=r"the plan kernel-6\.8 changes it now"):
        relocatable(held, NOW)


def test_quarantine_survives_the_move() -> None:
    """Its cause stays; a release leads back to the cables, which are others now, and never further on."""
    ill = stopped(node(Stage.QUARANTINED), "burnin")
    moved = after(ill, relocated(ill, WAS, now(rack="B02"), "a new hall", ()))
    assert (moved.stage, moved.stopped_at, moved.cause) == (Stage.QUARANTINED, Step.CABLE, ill.cause)
    early = stopped(node(Stage.QUARANTINED), "discover")
    assert after(early, relocated(early, WAS, now(rack="B02"), "a new hall", ())).stopped_at is Step.DISCOVER
