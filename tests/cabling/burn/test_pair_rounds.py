"""Pairs: no host twice in a round, no pair twice, every distance in turn."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterctl.cabling.burn.layout import HostPosition
from clusterctl.cabling.burn.pair_rounds import Distance, every_pair, rounds_by_distance, unpaired
from clusterctl.fleet.errors import UsageError


def places(pods: list[list[int]]) -> list[HostPosition]:
    """Pods of leaves of so many hosts."""
    leaves = [(pod, hosts) for pod, counts in enumerate(pods) for hosts in counts]
    return [
        HostPosition(f"l{leaf}h{host}", leaf, pod) for leaf, (pod, hosts) in enumerate(leaves) for host in range(hosts)
    ]


def distance(one: HostPosition, other: HostPosition) -> Distance:
    if one.leaf == other.leaf:
        return Distance.LEAF
    return Distance.POD if one.pod == other.pod else Distance.CORE


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=4), st.integers(0, 40))
def test_rounds(pods, most):
    """In any tree: rounds as asked for at most, each of one distance, no host twice in it, and no pair twice at all."""
    hosts = places(pods)
    by_name = {host.name: host for host in hosts}
    rounds = rounds_by_distance(hosts, most)
    assert len(rounds) <= most
    for one in rounds:
        names = [name for pair in one.pairs for name in pair]
        assert len(names) == len(set(names))
        assert {distance(by_name[a], by_name[b]) for a, b in one.pairs} == {one.distance}
    pairs = Counter(frozenset(pair) for one in rounds for pair in one.pairs)
    assert not pairs or max(pairs.values()) == 1


def test_every_tier_is_crossed():
    """Six rounds on a whole tree: two of each distance, every host in each of them."""
    hosts = places([[4, 4], [4, 4]])
    rounds = rounds_by_distance(hosts)
    assert Counter(one.distance for one in rounds) == {Distance.LEAF: 2, Distance.POD: 2, Distance.CORE: 2}
    assert all(len(one.pairs) == 8 for one in rounds)
    assert unpaired(hosts, rounds) == ()


def test_enough_rounds_meet_all():
    """With rounds enough every pair has met."""
    hosts = places([[2, 3], [4]])
    rounds = rounds_by_distance(hosts, 1000)
    assert sum(len(one.pairs) for one in rounds) == 9 * 8 // 2


def test_every_pair_up_to_32():
    """32 hosts: 31 rounds of 16; one more is refused with what to do instead."""
    rounds = every_pair(places([[32]]))
    assert [len(one.pairs) for one in rounds] == [16] * 31
    assert len({frozenset(pair) for one in rounds for pair in one.pairs}) == 32 * 31 // 2
    with pytest.raises(UsageError, match="every pair of 33 hosts"):
        every_pair(places([[33]]))


def test_lonely_host_is_named():
    """A host that no round measures is reported."""
    hosts = places([[3]])
    assert unpaired(hosts, rounds_by_distance(hosts, 1)) != ()
