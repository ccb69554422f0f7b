"""Random fat trees, broken at random: what is proposed restores them, with no more work than breaking them took."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterctl.cabling.actions import carry_out
from clusterctl.cabling.explain.explanation import FaultKind
from clusterctl.cabling.explain.verify import verify
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid
from tests.cabling.explain.technician import Technician
from tests.cabling.world import Shape, World

SHAPES = st.builds(
    Shape,
    groups=st.integers(2, 4),
    rails=st.sampled_from((2, 4, 8)),
    hosts=st.integers(4, 8),
    spines=st.integers(3, 4),
    cores=st.sampled_from((0, 2, 3)),
    trunks=st.integers(1, 2),
)
"""28 to 536 cables. Smaller ones would not outlast 50 faults: nothing would be left to identify a device by."""


def swap(world: World, chance: random.Random) -> int:
    return _rotated(world, chance, 2)


def rotate(world: World, chance: random.Random) -> int:
    return _rotated(world, chance, chance.randint(3, 6))


def _rotated(world: World, chance: random.Random, count: int) -> int:
    plugged = world.plugged()
    if len(plugged) < count:
        return 0
    world.rotate(chance.sample(plugged, count))
    return count


def wrong_rail(world: World, chance: random.Random) -> int:
    """Two adapters of one host exchange their cables."""
    here = set(world.plugged())
    adapters = [port for port in here if not world.is_switch(port.guid)]
    first = chance.choice(sorted(adapters)) if adapters else None
    host = world.host_of(first.guid) if first else ""
    others = [port for port in sorted(adapters) if world.host_of(port.guid) == host and port != first]
    if first is None or not others:
        return 0
    world.rotate([first, chance.choice(others)])
    return 2


def unplug(world: World, chance: random.Random) -> int:
    """A whole cable is gone, or one of its plugs is out."""
    cables = [cable for cable in world.cables if len(cable) == 2]
    if not cables:
        return 0
    cable = chance.choice(cables)
    if chance.random() < 0.5:
        cable.clear()
    else:
        cable.remove(chance.choice(sorted(cable)))
    return 1


def extra(world: World, chance: random.Random) -> int:
    """A cable between two free switch ports."""
    a, b = (chance.choice(world.free(guid)) for guid in chance.sample(world.switches() * 2, 2))
    if a == b:
        return 0
    world.cables.append({a, b})
    return 1


def rename(world: World, chance: random.Random) -> int:
    """A switch or adapter with a factory name, two switches under each other's name, or two under the same."""
    how = chance.randrange(4)
    first, second = chance.sample(world.switches() * 2, 2)
    if how == 0:
        world.names[first] = f"switch-{chance.randrange(16**6):06x}"
    elif how == 1:
        adapter = chance.choice([guid for guid in world.names if not world.is_switch(guid)])
        world.names[adapter] = "MT4129 ConnectX7 Mellanox Technologies"
    elif first == second:
        return 0
    elif how == 2:
        world.names[first], world.names[second] = world.names[second], world.names[first]
        return 2
    else:
        world.names[first] = world.names[second]
    return 1


def switch_off(world: World, chance: random.Random) -> int:
    world.off.add(chance.choice(world.switches()))
    return 1


FAULTS: tuple[Callable[[World, random.Random], int], ...] = (
    swap,
    rotate,
    wrong_rail,
    unplug,
    extra,
    rename,
    switch_off,
)


def restored(shape: Shape, count: int, seed: int, faults=FAULTS) -> None:
    """Break, then read and follow the explanations in turn until none is left.

    Where names are unproven, the GUIDs of these hosts are read, and their node descriptions set.

    The work is not bounded where another switch has a dark switch's name, or the reverse: what is not seen
    cannot be distinguished from what is misnamed.
    """
    chance = random.Random(seed)
    world = World(shape.plan())
    made = sum(chance.choice(faults)(world, chance) for _ in range(count))
    murky = world.bears_a_dark_ones_name()
    done = 0
    inventory: dict[Guid, PortName] = {}
    for _ in range(count + 2):
        verification = verify(world.plan, world.fabric(), inventory)
        if not verification.explanations:
            break
        unproven = {e.nodes for e in verification.explanations if e.kind is FaultKind.NAMES_UNPROVEN}
        done += Technician(world, verification).work()
        read = world.adapters({host for nodes in unproven for host in nodes})
        inventory |= read
        world.names |= {guid: str(adapter) for guid, adapter in read.items()}
    assert verification.explanations == ()
    assert world.as_planned()
    assert done <= made or murky


@pytest.mark.parametrize(
    ("shape", "count", "seed"),
    [
        (Shape(groups=2, rails=2, hosts=5, spines=3, cores=0, trunks=2), 11, 4206590332),
        (Shape(groups=2, rails=2, hosts=4, spines=4, cores=0, trunks=1), 9, 272167093),
        (Shape(groups=3, rails=2, hosts=6, spines=4, cores=0, trunks=2), 11, 3362848498),
        (Shape(groups=3, rails=2, hosts=5, spines=4, cores=0, trunks=2), 8, 497963008),
        (Shape(groups=3, rails=2, hosts=6, spines=3, cores=2, trunks=1), 13, 631355987),
        (Shape(groups=3, rails=2, hosts=4, spines=3, cores=3, trunks=2), 20, 59908345),
    ],
)
def test_few_votes_do_not_rename_adapters(shape, count, seed):
    """Some hosts show one adapter only, and few of their cables a rail: these are exchanged, and no names differ."""
    restored(shape, count, seed)


@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(SHAPES, st.integers(0, 50), st.integers(0, 2**32))
def test_any_faults_are_undone(shape, count, seed):
    """Up to 50 faults of all kinds: obeying restores the cabling, with no more actions than the faults were (see `restored`)."""
    restored(shape, count, seed)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(SHAPES, st.sampled_from(FAULTS), st.integers(1, 8), st.integers(0, 2**32))
def test_one_kind_of_fault(shape, fault, count, seed):
    """The same for several faults of one kind, where a kind that is always read wrongly would show."""
    restored(shape, count, seed, (fault,))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(SHAPES, st.integers(1, 50), st.integers(0, 2**32))
def test_what_the_work_leads_to_is_foretold(shape, count, seed):
    """While all is lit and well named, `carry_out` of all steps is exactly the plan, as a re-check will find."""
    chance = random.Random(seed)
    world = World(shape.plan())
    for _ in range(count):
        chance.choice((swap, rotate, wrong_rail, extra))(world, chance)
    verification = verify(world.plan, world.fabric())
    done = carry_out((step for e in verification.explanations for step in e.steps), verification.cables)
    if verification.observed == len([cable for cable in world.cables if len(cable) == 2]):
        assert done == {cable.ends for cable in world.plan.cables}


@pytest.mark.soak
@settings(max_examples=1000, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(SHAPES, st.integers(0, 50), st.integers(0, 2**32))
def test_any_faults_are_undone_at_length(shape, count, seed):
    """As above, a thousand fabrics."""
    restored(shape, count, seed)
