"""Without a plan: the rule that most cables follow is found, and who breaks it is named."""

from __future__ import annotations

import random

import pytest

from clusterctl.cabling.infer.plan import infer, verify_unplanned
from clusterctl.cabling.infer.rules import alike, majority
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", ["999999999", "9" * 5000])
def test_a_switch_with_a_huge_number_holds_nothing_up(number):
    """A switch names itself: the numbers before it are no absent switches, and no list of them is made."""
    world = World(Shape(groups=3, rails=4, hosts=6, spines=5, cores=0, trunks=2).plan())
    gone = world.guids["spine-2"]
    world.cables = [cable for cable in world.cables if all(port.guid != gone for port in cable)]
    world.names = {guid: name.replace("spine-4", f"spine-{number}") for guid, name in world.names.items()}
    found = verify_unplanned(world.fabric()).verification
    absent = {one.devices for one in found.explanations if one.kind.value == "absent_device"}
    assert absent <= {("spine-2",)}


def without(shape_or_plan, absent):
    """The world of a plan in which one switch has no power."""
    world = World(shape_or_plan.plan() if isinstance(shape_or_plan, Shape) else shape_or_plan)
    world.cables = [cable for cable in world.cables if all(port.guid != world.guids[absent] for port in cable)]
    return verify_unplanned(world.fabric())


@pytest.mark.parametrize(
    ("shape", "absent"),
    [
        (Shape(groups=3, rails=4, hosts=6, spines=4, cores=0, trunks=2), "spine-0"),
        (Shape(groups=3, rails=4, hosts=6, spines=4, cores=3, trunks=2), "core-0"),
        (Shape(groups=1, rails=4, hosts=6, spines=4, cores=0, trunks=2), "leaf-0-0"),
        (Shape(groups=1, rails=8, hosts=6, spines=3, cores=0, trunks=2), "spine-1"),
        (Shape(groups=1, rails=8, hosts=6, spines=2, cores=0, trunks=2), "leaf-0-5"),
    ],
)
def test_an_absent_first_switch_and_one_of_few_are_named(shape, absent):
    """Names of a row begin with the first number, and two of three switches with a gap between them are a row."""
    found = without(shape, absent).verification
    assert [one.devices for one in found.explanations if one.kind.value == "absent_device"] == [(absent,)]


def test_one_of_two_spines_may_be_absent():
    """A single spine with the second number, and free ports where the first would be, is no pass and no proof."""
    (found,) = without(
        Shape(groups=2, rails=8, hosts=8, spines=2, cores=0, trunks=4), "spine-0"
    ).verification.explanations
    assert (found.kind.value, found.tie, found.devices) == ("no_rule", True, ("spine-0",))


def test_one_of_two_groups_lacks_an_adapter():
    """Of two groups alike one is half: the hosts that lack an adapter are named."""
    found = without(Shape(groups=2, rails=8, hosts=8, spines=2, cores=0, trunks=4), "leaf-0-7").verification
    assert "lack mlx5_7" in found.explanations[0].cause


def pods(spines: dict[int, int], *, hosts: int = 6, first: int = 81) -> WiringPlan:
    """Pods of four leaves with spines of their own, as many as given for each."""
    pairs = [
        (PortName(f"pod{pod}-leaf-{leaf}", str(port)), PortName(f"pod{pod}-host{port}", f"mlx5_{leaf}"))
        for pod in spines
        for leaf in range(4)
        for port in range(1, hosts + 1)
    ]
    trunks = [
        (PortName(f"pod{pod}-leaf-{leaf}", str(first + spine)), PortName(f"pod{pod}-spine-{spine}", str(1 + leaf)))
        for pod, count in spines.items()
        for leaf in range(4)
        for spine in range(count)
    ]
    tops = [
        (PortName(f"pod{pod}-spine-{spine}", "81"), PortName("core-0", str(10 * pod + spine)))
        for pod, count in spines.items()
        for spine in range(count)
        if len(spines) > 1
    ]
    cables = tuple(PlannedCable(a, b) for a, b in (*pairs, *trunks, *tops))
    return WiringPlan(cables, frozenset(b.device for _, b in pairs))


def test_a_pod_with_fewer_uplinks_than_its_like_is_no_pass():
    """The last spine of a pod is absent: the leaves of the other pods lead up to more."""
    (finding,) = without(pods({1: 4, 2: 4, 3: 4}), "pod2-spine-3").inference.absent
    assert (finding.kind.value, finding.tie) == ("no_rule", True)
    assert finding.devices == tuple(f"pod2-leaf-{leaf}" for leaf in range(4))
    other_kind = infer(World(pods({1: 4, 2: 4, 3: 2})).fabric())
    assert other_kind.absent == ()


def test_last_ports_that_alone_are_free_are_no_pass():
    """Leaves whose hosts fill one half, and uplinks the other half but for the last port, may lack a spine."""
    full = pods({1: 64}, hosts=64, first=65)
    (finding,) = without(full, "pod1-spine-63").verification.explanations
    assert (finding.kind.value, finding.tie) == ("no_rule", True)
    assert "port 128" in finding.cause
    hosts_leave_ports_free_too = infer(World(pods({1: 63}, hosts=60, first=65)).fabric())
    assert hosts_leave_ports_free_too.absent == ()


def test_what_cannot_be_seen_is_reported():
    """A fabric without a finding still reports that a last switch would leave no trace, and numbers that no host has."""
    found = without(Shape(groups=1, rails=8, hosts=6, spines=3, cores=0, trunks=2), "spine-2")
    assert found.verification.as_planned
    assert "first or last switch" in found.inference.limits[0]
    holes = without(Shape(groups=1, rails=8, hosts=6, spines=3, cores=0, trunks=2), "leaf-0-3").inference.limits
    assert any("mlx5_3" in limit for limit in holes)
