"""Which hosts a burn of some leaves needs."""

from __future__ import annotations

import pytest

from clusterctl.cabling.burn.scope import BurnScope, hosts_for
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan

LEAF = BurnScope(leaves=frozenset({"leaf-1"}))


def plan(cables: dict[str, tuple[str, ...]]) -> WiringPlan:
    """Return a plan of the hosts with one adapter on each of their leaves."""
    found = [
        PlannedCable(PortName(host, f"mlx5_{number}"), PortName(leaf, str(number)))
        for host, leaves in cables.items()
        for number, leaf in enumerate(leaves)
    ]
    return WiringPlan((*found, PlannedCable(PortName("leaf-1", "33"), PortName("spine-1", "1"))), frozenset(cables))


SINGLE = plan({"n1": ("leaf-1",), "n2": ("leaf-1",), "n3": ("leaf-2",), "n4": ("leaf-2",), "n5": ("leaf-2",)})
RAILS = plan({"n1": ("leaf-1", "leaf-2"), "n2": ("leaf-1", "leaf-2"), "n3": ("leaf-3", "leaf-4")})


def test_without_a_leaf_all_free_hosts_take_part():
    assert hosts_for(BurnScope(rails=frozenset({0})), SINGLE, ["n1", "n3"]) == {"n1", "n3"}


def test_hosts_of_the_leaf_get_as_many_partners():
    """Their uplinks carry packets to other leaves only; no more hosts than needed lose their jobs."""
    assert hosts_for(LEAF, SINGLE, ["n1", "n2", "n3", "n4", "n5"]) == {"n1", "n2", "n3", "n4"}
    assert hosts_for(LEAF, SINGLE, ["n2", "n5"]) == {"n2", "n5"}


def test_hosts_with_adapters_on_other_leaves_need_no_partners():
    assert hosts_for(LEAF, RAILS, ["n1", "n2", "n3"]) == {"n1", "n2"}


def test_a_leaf_that_the_plan_has_not_is_refused_with_those_that_it_has():
    with pytest.raises(UsageError, match="no host is on leaf-9") as caught:
        hosts_for(BurnScope(leaves=frozenset({"leaf-9"})), SINGLE, ["n1"])
    assert "leaf-1 and leaf-2" in caught.value.remedy
