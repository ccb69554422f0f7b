"""The tree of switch groups that follows from wiring plans."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.cabling.switch_tree import switch_tree
from clusterctl.fleet.fabric.switch_tree import restricted
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan


def standard(hosts: int, rails: int, radix: int, tiers: int) -> WiringPlan:
    naming = PortNaming(tuple(f"mlx5_{rail}" for rail in range(rails)), twin_cages=False)
    return generate(shape_of(FabricSize(hosts, rails, radix, tiers)), naming, RackLayout())


def plan(hosts: str, *pairs: str) -> WiringPlan:
    """A plan of cables such as `n1-a`: the first device's next port to the second's."""
    cables = []
    for number, pair in enumerate(pairs, start=1):
        one, other = pair.split("-")
        cables.append(PlannedCable(PortName(one, str(number)), PortName(other, str(number))))
    return WiringPlan(tuple(cables), frozenset(hosts.split()))


@pytest.mark.parametrize(
    ("size", "units", "pods", "fabric"),
    [((8, 2, 8, 2), 2, 0, 1), ((4, 1, 8, 1), 1, 0, 0), ((32, 2, 8, 3), 8, 4, 1), ((256, 8, 64, 2), 8, 0, 1)],
)
def test_a_standard_tree_has_units_pods_and_one_top(
    size: tuple[int, int, int, int], units: int, pods: int, fabric: int
) -> None:
    """Rails do not matter: the hosts on the same leaves are one unit, and each host is in one."""
    wiring = standard(*size)
    tree = switch_tree(wiring)
    names = [group.name for group in tree]
    assert sum(name.startswith("unit") for name in names) == units
    assert sum(name.startswith("pod") for name in names) == pods
    assert names.count("fabric") == fabric
    hosts = [host for group in tree for host in group.hosts]
    assert sorted(hosts) == sorted(wiring.hosts)


def test_a_unit_names_its_leaves_and_a_pod_its_units() -> None:
    """Each group is below exactly one other, but for the top."""
    tree = switch_tree(standard(32, 2, 8, 3))
    below = [name for group in tree for name in group.groups]
    assert sorted(below) == sorted(group.name for group in tree if group.name != "fabric")
    assert len(tree[0].switches) == 2
    assert {len(group.hosts) for group in tree if group.tier == 0} == {4}


def test_a_host_that_lacks_a_cable_stays_with_its_unit() -> None:
    """One rail of n2 is not planned yet; and n3 is cabled to the second rail alone."""
    tree = switch_tree(plan("n1 n2 n3", "n1-a", "n1-b", "n2-a", "n3-b"))
    assert [(group.name, group.hosts) for group in tree] == [("unit1", ("n1", "n2", "n3"))]


def test_fabrics_that_do_not_meet_stay_apart() -> None:
    """No group pretends that a job could span them."""
    tree = switch_tree(plan("n1 n2 n10", "n1-a", "n2-b", "n10-c", "a-s", "b-s"))
    assert [(group.name, group.hosts, group.groups) for group in tree] == [
        ("unit1", ("n1",), ()),
        ("unit2", ("n2",), ()),
        ("unit3", ("n10",), ()),
        ("pod1", (), ("unit1", "unit2")),
        ("pod2", (), ("unit3",)),
    ]


def test_leaves_that_are_cabled_to_each_other_are_one_fabric() -> None:
    """Without a switch above them; a plan without hosts has no groups."""
    tree = switch_tree(plan("n1 n2", "n1-a", "n2-b", "a-b"))
    named = [(group.name, group.switches) for group in tree]
    assert named == [("unit1", ("a",)), ("unit2", ("b",)), ("fabric", ())]
    assert switch_tree(plan("", "a-b")) == ()
    assert switch_tree(plan("")) == ()


def test_names_do_not_change_when_hosts_leave() -> None:
    """A group without hosts goes, with the groups above it that become empty."""
    tree = switch_tree(standard(32, 2, 8, 3))
    last = tree[7].hosts
    left = restricted(tree, last)
    assert [group.name for group in left] == ["unit8", "pod4", "fabric"]
    assert left[0] == replace(tree[7], hosts=last)
    assert restricted(tree, ()) == ()
