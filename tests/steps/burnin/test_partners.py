"""Partners for a node that has none to be measured with."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress
from clusterctl.steps.burnin.node_under_test import NodeUnderTest, SkuLimits
from clusterctl.steps.burnin.partners import PartnerPool
from tests.lab_data import lab_limits
from tests.steps.discover.test_discover import SKU


def under_test(name: str) -> NodeUnderTest:
    host = HostAddress(name, "192.0.2.1", "ops", "ssh-ed25519 A", "/key")
    return NodeUnderTest(NodeState(NodeId(name), name), Serial(name), host, SkuLimits(SKU, lab_limits()))


def partners_of(partners: PartnerPool, alone: NodeUnderTest, deadline: Deadline) -> list[str]:
    with partners.batch(), partners.lend([alone], deadline) as loan:
        return [partner.name for partner in loan.partners]


def test_one_alone_waits_for_nodes_that_are_still_being_proven() -> None:
    """Another batch runs: its node is proven after a while, and is a partner then."""
    partners, proven = PartnerPool(), threading.Event()

    def other() -> None:
        with partners.batch():
            assert proven.wait(600)
            partners.add(under_test("n1"))

    with ThreadPoolExecutor(2) as pool:
        busy = pool.submit(other)
        waiting = pool.submit(partners_of, partners, under_test("n0"), Deadline.after(60))
        assert not waiting.done()
        proven.set()
        busy.result()
        assert waiting.result() == ["n1"]


def test_no_node_waits_without_a_possible_partner() -> None:
    """Where no other batch runs, or all of them wait too, one goes on without partners."""
    partners = PartnerPool()
    assert not partners_of(partners, under_test("n0"), Deadline.after(60))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(partners_of, partners, under_test(name), Deadline.after(60)) for name in ("n0", "n1")]
        assert [each.result() for each in both] == [[], []]


def test_a_stopped_run_ends_the_wait() -> None:
    """Ctrl-C ends the wait."""
    partners, cancelled = PartnerPool(), threading.Event()
    cancelled.set()
    with partners.batch(), pytest.raises(CancelledError):
        partners_of(partners, under_test("n0"), Deadline.after(60, cancelled))


def test_a_wait_that_takes_too_long_ends_without_partners() -> None:
    """Another batch runs on beyond the deadline: the waiting node goes on alone, its results so far are not lost."""
    partners = PartnerPool()
    with partners.batch():
        assert partners_of(partners, under_test("n0"), Deadline.after(0)) == []
        partners.add(under_test("m1"))
        pair = [under_test("n0"), under_test("n1")]
        with partners.batch(), partners.lend(pair, Deadline.after(0)) as loan:
            assert [partner.name for partner in loan.partners] == ["m1"]
            assert loan.more(proven=False) == []
            assert loan.partners == []
        assert partners_of(partners, under_test("n2"), Deadline.after(60)) == ["m1"]


def test_an_undecided_node_is_lent_further_partners() -> None:
    """Those who are proven meanwhile, each once, not without end; all are given back."""
    partners = PartnerPool()
    with partners.batch(), partners.lend([under_test("n0"), under_test("n1")], Deadline.after(60)) as loan:
        assert not loan.partners
        for number in range(2, 20):
            partners.add(under_test(f"n{number:02}"))
        first, second = loan.more(proven=False), loan.more(proven=True)
        assert [partner.name for partner in (*first, *second)] == [f"n{number:02}" for number in range(2, 10)]
        assert loan.more(proven=False) == []
    assert len(partners_of(partners, under_test("n0"), Deadline.after(60))) == 3


def test_a_proven_batch_that_waits_is_still_waited_for() -> None:
    """Two wait: the proven one goes on, for no other node runs, and is a partner for the other then."""
    partners, begun = PartnerPool(), threading.Event()

    def pair() -> list[NodeUnderTest]:
        with partners.batch(), partners.lend([under_test("n1"), under_test("n2")], Deadline.after(60)) as loan:
            begun.set()
            found = loan.more(proven=True)
            partners.add(under_test("n1"))
            return found

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(pair)
        assert begun.wait(600)
        assert partners_of(partners, under_test("n0"), Deadline.after(60)) == ["n1"]
        assert waiting.result() == []


def test_of_two_that_wait_each_meets_the_others_partners() -> None:
    """One after the other: neither gives up while the other holds a partner that it has not met."""
    partners, seats, ended = PartnerPool(), threading.Barrier(2), threading.Barrier(2)
    for name in ("m1", "m2", "m3", "m4"):
        partners.add(under_test(name))

    def batch(*names: str) -> tuple[list[str], list[str]]:
        with partners.batch(), partners.lend([under_test(name) for name in names], Deadline.after(60)) as loan:
            first = [partner.name for partner in loan.partners]
            seats.wait(600)
            further = [partner.name for partner in loan.more(proven=False)]
            assert [partner.name for partner in loan.partners] == [*first, *further]
        ended.wait(600)
        return first, further

    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.submit(batch, *names) for names in (("n0", "n1"), ("n2", "n3")))
        assert one.result()[0] == other.result()[1]
        assert other.result()[0] == one.result()[1]


def test_a_stopped_wait_lends_no_partner_twice() -> None:
    """Its partners are the pool's while it waits, and stay so."""
    partners, cancelled = PartnerPool(), threading.Event()
    partners.add(under_test("m1"))
    partners.add(under_test("m2"))
    with partners.batch():
        with (
            partners.batch(),
            partners.lend([under_test("n0"), under_test("n1")], Deadline.after(60, cancelled)) as loan,
        ):
            cancelled.set()
            with pytest.raises(CancelledError):
                loan.more(proven=False)
            assert not loan.partners
        assert partners_of(partners, under_test("n2"), Deadline.after(60)) == ["m1", "m2"]
