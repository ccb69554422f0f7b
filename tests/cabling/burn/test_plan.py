"""The plan of a burn: every link that a route uses gets a flow of its own, and the others are named."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.burn.plan import BurnPlan, Lengths, check_window, plan_burn
from clusterctl.fleet.errors import ParseError, UsageError
from clusterctl.fleet.fabric.topology import NO_ROUTE, ForwardingTables, RoutingOutcome
from tests.cabling.burn.tree import Tree, guid


def planned(tree: Tree, log: RoutingOutcome | None = None) -> BurnPlan:
    return plan_burn(tree.fabric(), tree.tables(), log)


def loads(plan: BurnPlan) -> list[list[int]]:
    return [[link for flow in stage.flows for link in flow.way] for stage in plan.stages.stages]


def hold(plan: BurnPlan) -> None:
    """No stage has two flows on a link; flows are as the tables lead them; loaded and named links are all links."""
    for links in loads(plan):
        assert len(links) == len(set(links))
    for stage in plan.stages.stages:
        for flow in stage.flows:
            assert flow.source.host != flow.target.host
            assert plan.routes.way(flow.source, flow.target) == flow.way
    reached = {link for links in loads(plan) for link in links}
    assert reached.isdisjoint(plan.stages.unreached)
    assert len(reached) + len(plan.unreached) == len(plan.routes.links)


def test_one_stage_loads_all():
    """Balanced tables: one stage, every link in both directions, exactly one flow on each."""
    plan = planned(Tree())
    (links,) = loads(plan)
    assert sorted(links) == list(range(2 * (16 + 16)))
    assert plan.balanced
    assert plan.reached == 64
    assert plan.routing.worst == 1


def test_all_traffic_over_one_spine_is_reported():
    """Tables that lead everything over one spine: the links of the others are named, and the imbalance is reported."""
    tree = Tree()
    for leaf in range(4):
        own = tree.exits[tree.leaf(leaf)]
        own |= {lid: 5 for lid, port in own.items() if port > 4}
    plan = planned(tree)
    hold(plan)
    assert {one.link for one in plan.unreached} == {
        way
        for leaf in range(4)
        for spine in (1, 2, 3)
        for way in (
            f"leaf-{leaf} port {5 + spine} → spine-{spine} port {leaf + 1}",
            f"spine-{spine} port {leaf + 1} → leaf-{leaf} port {5 + spine}",
        )
    }
    assert {one.reason for one in plan.unreached} == {"no route between two hosts uses it"}
    assert "4 flows on one link" in plan.routing.problem
    assert not plan.balanced


def test_odd_hosts_take_more_stages():
    """A host that is not there leaves links free: they get their flow in a further stage, none is left out."""
    tree = Tree()
    fabric = tree.fabric()
    gone = tree.adapter(15)
    links = tuple(link for link in fabric.links if gone not in (link.a.guid, link.b.guid))
    devices = {own: device for own, device in fabric.devices.items() if own != gone}
    plan = plan_burn(type(fabric)(devices, links), tree.tables())
    hold(plan)
    assert len(plan.stages.stages) > 1
    assert [one.link for one in plan.unreached] == ["spine-3 port 4 → leaf-3 port 8"]


def test_dropped_packets_are_reported():
    """A switch without an entry for a host: who cannot reach it is named, the links behind are not called loaded."""
    tree = Tree()
    tree.exits[tree.spine(0)][1] = NO_ROUTE
    plan = planned(tree)
    hold(plan)
    assert {target for _, target in plan.lost} == {"node0 mlx5_0"}
    assert not plan.balanced


def test_loops_are_reported():
    """Tables that lead packets in a circle are found, and the search ends."""
    tree = Tree(leaves=2, hosts=2)
    tree.exits[tree.spine(0)][1] = 2
    tree.exits[tree.leaf(1)][1] = 3
    plan = planned(tree)
    hold(plan)
    assert ("node2 mlx5_0", "node0 mlx5_0") in plan.lost


def test_adapter_without_lid():
    """A cabled adapter that no table knows: both directions of its link are named with that reason."""
    tree = Tree()
    tables = tree.tables()
    lids = {lid: owner for lid, owner in tables.lids.items() if lid != 6}
    plan = plan_burn(tree.fabric(), ForwardingTables(tables.tables, lids))
    assert sorted(one.link for one in plan.unreached if "no table has a LID" in one.reason) == [
        "leaf-1 port 2 → node5 mlx5_0",
        "node5 mlx5_0 → leaf-1 port 2",
    ]


def test_last_lid_that_dump_fts_leaves_out():
    """Where the tables end at a multiple of 64 the tool is the likely cause, and the error names what to read instead."""
    tree = Tree(leaves=9, hosts=7)
    tables = tree.tables()
    lids = {lid: owner for lid, owner in tables.lids.items() if lid != 63}
    plan = plan_burn(tree.fabric(), ForwardingTables(tables.tables, lids))
    assert sum("opensm-lfts.dump" in one.reason for one in plan.unreached) == 2


def test_two_adapters_of_one_host_never_talk_to_each_other():
    """A fabric of one host has no peer to send to: refused, not planned empty."""
    tree = Tree(leaves=1, hosts=1)
    with pytest.raises(UsageError, match="needs two"):
        planned(tree)


@pytest.mark.parametrize("missing", [True, False])
def test_tables_of_another_fabric(missing):
    """A switch without a table, or a table without its switch, is refused: they are not of one moment."""
    tree = Tree()
    tables = dict(tree.tables().tables)
    if missing:
        del tables[tree.spine(1)]
    else:
        tables[guid(7)] = tables[tree.leaf(0)]
    with pytest.raises(ParseError, match="no forwarding table of switch spine-1" if missing else "not in the fabric"):
        plan_burn(tree.fabric(), ForwardingTables(tables, tree.tables().lids))


def test_fall_back_in_the_log():
    """The log counts even where the tables look correct: engine and reason are reported."""
    plan = planned(Tree(), RoutingOutcome("minhop", ("ERR AB0D: Fabric topology hasn't been identified as FatTree",)))
    assert plan.routing.problem.startswith("the subnet manager fell back to minhop: ERR AB0D")
    assert not plan.balanced


def test_adaptive_engines():
    """An adaptive engine in the log is no fall-back, and is known as adaptive."""
    routing = planned(Tree(), RoutingOutcome("ar_ftree", ("ERR AB0C: x",))).routing
    assert routing.adaptive
    assert routing.problem == ""


def test_window():
    """A burn that is longer than the window is refused with its length; an equally long one is not."""
    plan = plan_burn(Tree().fabric(), Tree().tables(), None, Lengths(timedelta(hours=3), timedelta(minutes=30), 2))
    assert plan.duration == timedelta(hours=4)
    check_window(plan, timedelta(hours=4))
    with pytest.raises(UsageError, match=r"1 stages? and 2 rounds of pairs take 4:00:00"):
        check_window(plan, timedelta(hours=3))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_tables(data):
    """Whatever stands in the tables, the search ends, and its promises hold."""
    tree = Tree(leaves=3, hosts=2)
    for exits in tree.exits.values():
        for lid in data.draw(st.sets(st.integers(1, 6), max_size=3)):
            exits[lid] = data.draw(st.sampled_from((1, 2, 3, 4, 9, NO_ROUTE)))
    hold(planned(tree))
