"""The nodes of tonight: the oldest evidence first, no more than the site spares, and none beyond the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.nightly.policy import NightCandidate, NightPolicy, choose, overdue, require_affordable, spared
from tests.fleet.people import NOW

POLICY = NightPolicy(percent=20, node=timedelta(minutes=30), attempts=2, expiry=timedelta(days=14))
NIGHT = timedelta(hours=3)


def gold(count: int, sku: str = "h100", first: int = 0) -> list[NightCandidate]:
    """n0 has the youngest evidence, each next one a day older."""
    return [NightCandidate(f"{sku}-{at}", sku, NOW - timedelta(days=at)) for at in range(first, first + count)]


def idle(nodes: Sequence[NightCandidate]) -> dict[str, str]:
    return dict.fromkeys((node.name for node in nodes), "")


def test_the_oldest_evidence_goes_first_within_the_share() -> None:
    """20 % of 20 nodes; a node that the journal knows no burn-in of is older than all."""
    nodes = [*gold(19), NightCandidate("never", "h100", None)]
    chosen = choose(POLICY, nodes, idle(nodes), out=0, left=NIGHT)
    assert chosen.names == ("never", "h100-18", "h100-17", "h100-16")
    assert choose(replace(POLICY, most=2), nodes, idle(nodes), out=0, left=NIGHT).names == ("never", "h100-18")


def test_only_a_node_that_is_known_to_be_idle_is_taken() -> None:
    """A node at work waits; so does one that the scheduler does not name."""
    nodes = gold(20)
    reported = idle(nodes) | {"h100-19": "allocated"}
    del reported["h100-18"]
    assert choose(POLICY, nodes, reported, out=0, left=NIGHT).names == ("h100-17", "h100-16", "h100-15", "h100-14")
    none = choose(POLICY, nodes, {}, out=0, left=NIGHT)
    assert (none.names, none.why) == ((), "of 20 gold nodes that wait for their turn, 0 are idle: too few of one SKU")


def test_a_batch_is_of_one_sku_and_no_node_goes_alone() -> None:
    """One node alone of its SKU would only be found unmeasured; it waits for a partner."""
    nodes = [*gold(10), *gold(1, "h200", first=30)]
    assert choose(POLICY, nodes, idle(nodes), out=0, left=NIGHT).names == ("h100-9", "h100-8")
    nodes = [*gold(10), *gold(2, "h200", first=30)]
    assert choose(POLICY, nodes, idle(nodes), out=0, left=NIGHT).names == ("h200-31", "h200-30")


def test_a_node_that_is_out_already_counts() -> None:
    """Nodes that failed on earlier nights and are still drained are nodes without jobs."""
    nodes = gold(18)
    assert len(choose(POLICY, nodes, idle(nodes), out=2, left=NIGHT).names) == 2
    full = choose(POLICY, nodes, idle(nodes), out=3, left=NIGHT)
    assert (full.names, full.why) == ((), "3 nodes are out already, 1 more are spared")


def test_nothing_is_begun_that_may_not_end_in_time() -> None:
    """A turn may need both attempts: with less than that left, no node is taken."""
    nodes = gold(20)
    assert choose(POLICY, nodes, idle(nodes), out=0, left=timedelta(minutes=60)).names
    late = choose(POLICY, nodes, idle(nodes), out=0, left=timedelta(minutes=59))
    assert (late.names, late.why) == ((), "the window closes in 59 min, a turn may take 60 min")


def test_no_node_has_two_turns_a_night() -> None:
    """Nor is a node that could not be taken asked again and again."""
    nodes = gold(20)
    tried = frozenset(node.name for node in nodes[2:])
    assert choose(POLICY, nodes, idle(nodes), out=0, left=NIGHT, tried=tried).names == ("h100-1", "h100-0")
    everyone = frozenset(node.name for node in nodes)
    assert choose(POLICY, nodes, idle(nodes), out=0, left=NIGHT, tried=everyone).why == "every gold node had its turn"


def test_an_expiry_that_cannot_be_kept_is_refused_with_its_arithmetic() -> None:
    """511 nodes, 5 % at a time, three turns a night: 7 nights."""
    policy = replace(POLICY, percent=5, expiry=timedelta(days=7))
    require_affordable(policy, 511, NIGHT)
    with pytest.raises(UsageError) as caught:
        require_affordable(replace(policy, expiry=timedelta(days=6)), 511, NIGHT)
    assert caught.value.message == (
        "511 gold nodes / (3 turns a night × 25 nodes at a time) = 7 nights, but evidence expires after 6 days "
        "(180 min / (2 × 30 min = 60 min) = 3)"
    )
    assert "let evidence last 7 days" in caught.value.remedy


def test_a_window_without_room_for_one_turn_is_refused() -> None:
    """Else no node would ever be tested, and every night would report that all is well."""
    with pytest.raises(UsageError, match=r"one turn may take 2 × 30 min = 60 min, the window has 45 min"):
        require_affordable(POLICY, 100, timedelta(minutes=45))


@pytest.mark.parametrize(
    ("policy", "pool", "remedy"),
    [
        (replace(POLICY, percent=5), 20, "set nightly.percent to 10 at least"),
        (replace(POLICY, most=1), 100, "set nightly.most to 2 at least"),
        (POLICY, 1, "admit more nodes first"),
        (POLICY, 0, "admit more nodes first"),
    ],
)
def test_a_share_of_one_node_measures_nothing(policy: NightPolicy, pool: int, remedy: str) -> None:
    """It is refused, with what to do."""
    with pytest.raises(UsageError, match="a burn-in needs 2 nodes") as caught:
        spared(policy, pool)
    assert caught.value.remedy == remedy


def test_overdue_nodes_are_named() -> None:
    """Oldest first; who never was measured before all."""
    nodes = [*gold(17), NightCandidate("never", "h100", None)]
    assert overdue(POLICY, nodes, NOW) == ("never", "h100-16", "h100-15")


@given(
    pool=st.integers(min_value=10, max_value=200),
    percent=st.integers(min_value=20, max_value=100),
    out=st.integers(min_value=0, max_value=30),
    minutes=st.integers(min_value=0, max_value=300),
)
def test_the_budget_is_never_exceeded(pool: int, percent: int, out: int, minutes: int) -> None:
    """Whatever is out already, whichever is idle: the share holds, none is alone, none twice."""
    nodes = gold(pool)
    policy = replace(POLICY, percent=percent)
    chosen = choose(policy, nodes, idle(nodes), out=out, left=timedelta(minutes=minutes)).names
    assert len(chosen) != 1
    assert not chosen or len(chosen) + out <= (pool + out) * percent // 100
    assert len(set(chosen)) == len(chosen)
    assert not chosen or minutes >= 60
