"""Without a plan: the rule that most cables follow is found, and who breaks it is named."""

from __future__ import annotations

import random

import pytest

from clusterctl.cabling.infer.plan import infer, verify_unplanned
from clusterctl.cabling.infer.rules import alike, majority
from tests.cabling.bench import kinds
from tests.cabling.explain.test_restored import extra, rename, swap, wrong_rail
from tests.cabling.world import Shape, World

SHAPE = Shape(groups=3, rails=4, hosts=6, spines=4, cores=3, trunks=2)


@pytest.mark.parametrize("shape", [SHAPE, Shape(2, 8, 8, 4, 0, 1), Shape(4, 2, 8, 3, 3, 1)])
def test_the_plan_is_found_again(shape):
    """From a fabric that is as planned, the inferred cables are the planned ones, and every one is judged."""
    world = World(shape.plan())
    inference = infer(world.fabric())
    assert {cable.ends for cable in inference.plan.cables} == {cable.ends for cable in world.plan.cables}
    assert (inference.judged, inference.unjudged) == (len(world.plan.cables), 0)
    assert len(inference.rules) == 3
    assert verify_unplanned(world.fabric()).verification.explanations == ()


@pytest.mark.parametrize("fault", [swap, wrong_rail])
@pytest.mark.parametrize("seed", range(8))
def test_outliers_are_named(fault, seed):
    """Of cables that were swapped in a fabric of some hundred, the same ports are named as against the plan."""
    world = World(SHAPE.plan())
    fault(world, random.Random(seed))
    found = verify_unplanned(world.fabric()).verification
    (explanation,) = found.explanations
    assert found.moves == 2
    assert explanation.kind.value in {"swapped", "wrong_rail"}


def test_a_missing_cable_is_missed():
    """A host without one of its rails, where all others have it, lacks a cable."""
    world = World(SHAPE.plan())
    adapter = next(guid for unit, guid in world.guids.items() if unit == "node103 mlx5_2")
    next(cable for cable in world.cables if any(port.guid == adapter for port in cable)).clear()
    (found,) = verify_unplanned(world.fabric()).verification.explanations
    assert (found.kind.value, found.nodes) == ("missing_link", ("node103",))


def test_links_that_no_rule_covers_are_reported():
    """A cable between spare ports follows no rule: it is neither right nor wrong, and never silently passed."""
    world = World(SHAPE.plan())
    extra(world, random.Random(3))
    found = verify_unplanned(world.fabric())
    assert kinds(found.verification) == ["no_rule"]
    assert found.inference.unjudged == 1


def test_no_rule_at_all_is_no_pass():
    """Two hosts on one switch are too few for a rule: nothing is judged, and that is a finding."""
    world = World(Shape(1, 1, 2, 1, 0, 1).plan())
    found = verify_unplanned(world.fabric())
    assert kinds(found.verification) == ["no_rule"]
    assert (found.verification.planned, found.verification.right) == (0, 0)


def test_a_renamed_switch_does_not_matter():
    """Rules are about places, so that an odd name breaks none."""
    world = World(SHAPE.plan())
    rename(world, random.Random(1))
    assert not {"swapped", "moved", "missing_link"} & set(kinds(verify_unplanned(world.fabric()).verification))


def test_majority():
    """Two thirds of three or more; nothing less is a rule."""
    assert majority("aab") is None
    assert majority("aaab") == "a"
    assert majority("aaabb") is None
    assert majority([]) is None


def test_alike():
    """Groups by what is shared, transitively; those that share nothing stand alone."""
    sets = {"a": {"x", "y", "z"}, "b": {"y", "z"}, "c": {"q"}, "d": {"x", "y", "z", "w"}}
    assert sorted(alike(sets)) == [("a", "b", "d"), ("c",)]


@pytest.mark.parametrize(
    ("shape", "absent"),
    [
        (Shape(groups=3, rails=4, hosts=6, spines=5, cores=0, trunks=2), "spine-2"),
        (Shape(groups=3, rails=4, hosts=6, spines=4, cores=5, trunks=1), "core-3"),
        (Shape(groups=3, rails=5, hosts=6, spines=4, cores=0, trunks=1), "leaf-1-2"),
    ],
)
def test_an_absent_switch_is_named(shape, absent):
    """A gap in the names and in the ports of all neighbours is an absent switch; no other device is accused of it."""
    world = World(shape.plan())
    world.cables = [cable for cable in world.cables if all(port.guid != world.guids[absent] for port in cable)]
    found = verify_unplanned(world.fabric()).verification
    assert [one.devices for one in found.explanations if one.kind.value == "absent_device"] == [(absent,)]
    assert not found.as_planned


@pytest.mark.parametrize("absent", ["leaf-0-0", "leaf-2-3"])
def test_hosts_that_lack_an_adapter_are_no_pass(absent):
    """The first and the last leaf leave no gap: the hosts of one group without an adapter that others have are named."""
    world = World(Shape(groups=3, rails=4, hosts=6, spines=4, cores=0, trunks=2).plan())
    world.cables = [cable for cable in world.cables if all(port.guid != world.guids[absent] for port in cable)]
    found = verify_unplanned(world.fabric()).verification
    (explanation,) = found.explanations
    _, group, rail = absent.split("-")
    assert (explanation.kind.value, len(explanation.devices)) == ("no_rule", 6)
    assert {host[:5] for host in explanation.devices} == {f"node{group}"}
    assert f"lack mlx5_{rail}" in explanation.cause
    assert not found.as_planned


def test_one_gap_alone_is_no_absent_switch():
    """Where no port is free, missing names prove nothing; where no name is missing, free ports prove nothing."""
    named = World(SHAPE.plan())
    named.names = {guid: name.replace("spine-2", "spine-9") for guid, name in named.names.items()}
    free = World(Shape(groups=3, rails=4, hosts=6, spines=5, cores=0, trunks=2).plan())
    free.names = {
        guid: name.replace("spine-3", "spine-2").replace("spine-4", "spine-3") for guid, name in free.names.items()
    }
    gone = free.guids["spine-2"]
    free.cables = [cable for cable in free.cables if all(port.guid != gone for port in cable)]
    for world in (named, free):
        found = verify_unplanned(world.fabric()).verification
        assert not [one for one in found.explanations if one.kind.value == "absent_device"]
