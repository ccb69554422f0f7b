"""Carrying out the moves gives the planned fabric, and takes no more moves than needed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.difference import components
from clusterctl.cabling.explain.repair import repair
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.topology import Link, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName
from clusterctl.fleet.node import Guid
from tests.cabling.world import Shape, World

PORTS = [PortName(f"sw-{n % 3}", str(n // 3 + 1)) for n in range(16)]
_ANY = Link(PortId(Guid("1"), 1), PortId(Guid("2"), 1), 4, "NDR")


@st.composite
def cablings(draw) -> set[frozenset[PortName]]:
    order = draw(st.permutations(PORTS))
    count = draw(st.integers(0, len(PORTS) // 2))
    return {frozenset(order[2 * n : 2 * n + 2]) for n in range(count)}


def _repairs(planned, observed):
    missing = [PlannedCable(*sorted(ends)) for ends in planned - observed]
    extra = [ObservedCable(ends, _ANY) for ends in observed - planned]
    return [repair(component) for component in components(missing, extra)]


@settings(max_examples=300, deadline=None)
@given(cablings(), cablings())
def test_the_moves_lead_to_the_plan(planned, observed):
    """Whatever is plugged in, the ordered removals, moves and insertions give exactly the planned cables."""
    at = {end: cable for cable in observed for end in cable}
    plugs = {end: (cable, end) for end, cable in at.items()}
    done = _repairs(planned, observed)
    for each in done:
        if each.remove:
            for end in each.remove:
                del plugs[end]
    moved = {to: plugs.pop(here) for each in done for here, to in each.moves}
    assert not moved.keys() & plugs.keys()
    plugs |= moved
    cables: dict[object, set[PortName]] = {}
    for end, (cable, _) in plugs.items():
        cables.setdefault(cable, set()).add(end)
    result = {frozenset(ends) for ends in cables.values()} | {frozenset(each.add) for each in done if each.add}
    assert result == planned


@settings(max_examples=200, deadline=None)
@given(st.permutations(range(8)))
def test_a_permutation_costs_its_displaced_plugs(order):
    """Plugs permuted on one switch cost one move for each that is not in its place: no fewer moves exist."""
    leaf = [PortName("leaf", str(n + 1)) for n in range(8)]
    hosts = [PortName(f"node{n}", "mlx5_0") for n in range(8)]
    planned = {frozenset(pair) for pair in zip(leaf, hosts, strict=True)}
    observed = {frozenset((leaf[n], hosts[host])) for n, host in enumerate(order)}
    displaced = sum(n != host for n, host in enumerate(order))
    done = _repairs(planned, observed)
    assert sum(len(each.moves) for each in done) == displaced
    assert all(here.device == to.device == "leaf" for each in done for here, to in each.moves)


@pytest.mark.parametrize(("leaves", "spines"), [(8, 2), (7, 3), (3, 8)])
def test_exchanged_cables_everywhere_are_repaired_at_the_fewest_switches(leaves, spines):
    """Both parallel cables of each pair are exchanged: the side with fewer switches is enough to visit."""
    world = World(Shape(groups=1, rails=leaves, hosts=3, spines=spines, cores=0, trunks=2).plan())
    for leaf in range(leaves):
        guid = world.guids[f"leaf-0-{leaf}"]
        for first in range(81, 81 + 2 * spines, 2):
            world.rotate([PortId(guid, first), PortId(guid, first + 1)])
    found = verify(world.plan, world.fabric())
    assert (found.chassis, found.moves) == (min(leaves, spines), 2 * leaves * spines)
