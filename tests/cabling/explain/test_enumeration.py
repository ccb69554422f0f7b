"""Hosts that number their adapters in another order than the plan, under the plan's own names."""

from __future__ import annotations

import pytest

from clusterctl.cabling.explain.verify import CablingVerification, verify
from tests.cabling.bench import kinds
from tests.cabling.world import Shape, World

RAILS = 4
HOSTS = 8
SHAPE = Shape(groups=1, rails=RAILS, hosts=HOSTS, spines=3, cores=0, trunks=1)


def renumbered(world: World, count: int) -> None:
    """Reverse the numbers of all adapters of the first hosts; their cables stay."""
    for host in range(count):
        for rail in range(RAILS):
            world.names[world.guids[f"node0{host:02d} mlx5_{rail}"]] = f"node0{host:02d} mlx5_{RAILS - 1 - rail}"


def verified(world: World) -> CablingVerification:
    return verify(world.plan, world.fabric())


@pytest.mark.parametrize("count", [3, 4, 6, 7, 8])
def test_hosts_with_one_order_are_renamed(count):
    """Whatever the other hosts show: each host counts with all its cables, and nothing is moved."""
    world = World(SHAPE.plan())
    renumbered(world, count)
    found = verified(world)
    assert (kinds(found), found.moves, found.right) == (["names_differ"], 0, len(world.plan.cables))
    assert len(found.explanations[0].devices) == count


@pytest.mark.parametrize("count", [1, 2])
def test_few_hosts_with_one_order_prove_nothing(count):
    world = World(SHAPE.plan())
    renumbered(world, count)
    found = verified(world)
    assert (kinds(found), found.moves) == (["names_unproven"], 0)
    assert found.right == len(world.plan.cables) - count * RAILS


def test_guids_tell_names_from_cables():
    """With the GUIDs of the hosts, renumbered adapters are right, and exchanged cables are moved."""
    world = World(SHAPE.plan())
    renumbered(world, 1)
    hosts = world.adapters({"node000", "node001"})
    assert verify(world.plan, world.fabric(), hosts).explanations == ()
    ports = sorted(port for port in world.plugged() if port.guid in hosts and hosts[port.guid].device == "node001")
    world.rotate(ports)
    assert verify(world.plan, world.fabric(), hosts).moves == RAILS


def test_a_swap_among_renumbered_hosts():
    """The host with the fault has most cables in the order of the others: only the fault is left."""
    world = World(SHAPE.plan())
    renumbered(world, 4)
    adapter, far = (next(p for p in world.plugged() if p.guid == world.guids[f"node00{n} mlx5_0"]) for n in (0, 1))
    world.rotate([adapter, far])
    found = verified(world)
    assert sorted(kinds(found)) == ["names_differ", "swapped"]
    assert found.moves == 2


def test_exchanged_names_of_leaves_are_no_other_order():
    """Three leaves under each other's names show the same on every host: their uplinks prove the leaves."""
    world = World(SHAPE.plan())
    leaves = [world.guids[f"leaf-0-{rail}"] for rail in range(3)]
    for guid, name in zip(leaves, ("leaf-0-1", "leaf-0-2", "leaf-0-0"), strict=True):
        world.names[guid] = name
    found = verified(world)
    assert (kinds(found), found.moves) == (["exchanged"], 0)
