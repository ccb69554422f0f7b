"""Company for a node that has nobody to be measured with."""

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


def guest(name: str) -> NodeUnderTest:
    host = HostAddress(name, "192.0.2.1", "ops", "ssh-ed25519 A", "/key")
    return NodeUnderTest(NodeState(NodeId(name), name), Serial(name), host, SkuLimits(SKU, lab_limits()))


def mates_of(company: PartnerPool, alone: NodeUnderTest, deadline: Deadline) -> list[str]:
    with company.batch(), company.lent([alone], deadline) as lent:
        return [mate.node.name for mate in lent.mates]


def test_one_alone_waits_for_those_who_are_still_being_proven() -> None:
    """Another batch runs: its node is proven after a while, and is company then."""
    company, proven = PartnerPool(), threading.Event()

    def other() -> None:
        with company.batch():
            assert proven.wait(10)
            company.add(guest("n1"))

    with ThreadPoolExecutor(2) as pool:
        busy = pool.submit(other)
        waiting = pool.submit(mates_of, company, guest("n0"), Deadline.after(60))
        assert not waiting.done()
        proven.set()
        busy.result()
        assert waiting.result() == ["n1"]


def test_nobody_waits_for_nobody() -> None:
    """Where no other batch runs, or all of them wait too, one goes on without company."""
    company = PartnerPool()
    assert not mates_of(company, guest("n0"), Deadline.after(60))
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(mates_of, company, guest(name), Deadline.after(60)) for name in ("n0", "n1")]
        assert [each.result() for each in both] == [[], []]


def test_a_stopped_run_ends_the_wait() -> None:
    """Ctrl-C is heard while one waits."""
    company, cancelled = PartnerPool(), threading.Event()
    cancelled.set()
    with company.batch(), pytest.raises(CancelledError):
        mates_of(company, guest("n0"), Deadline.after(60, cancelled))


def test_who_is_not_decided_is_lent_further_mates() -> None:
    """Those who are proven meanwhile, each once, not without end; all are given back."""
    company = PartnerPool()
    with company.batch(), company.lent([guest("n0"), guest("n1")], Deadline.after(60)) as lent:
        assert not lent.mates
        for number in range(2, 20):
            company.add(guest(f"n{number:02}"))
        first, second = lent.more(proven=False), lent.more(proven=True)
        assert [mate.node.name for mate in (*first, *second)] == [f"n{number:02}" for number in range(2, 10)]
        assert lent.more(proven=False) == []
    assert len(mates_of(company, guest("n0"), Deadline.after(60))) == 3


def test_a_proven_batch_that_waits_is_still_waited_for() -> None:
    """Two wait: the proven one goes on, for nobody else runs, and is company for the other then."""
    company, begun = PartnerPool(), threading.Event()

    def pair() -> list[NodeUnderTest]:
        with company.batch(), company.lent([guest("n1"), guest("n2")], Deadline.after(60)) as lent:
            begun.set()
            found = lent.more(proven=True)
            company.add(guest("n1"))
            return found

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(pair)
        assert begun.wait(10)
        assert mates_of(company, guest("n0"), Deadline.after(60)) == ["n1"]
        assert waiting.result() == []


def test_of_two_that_wait_each_meets_the_others_mates() -> None:
    """One after the other: neither gives up while the other sits on somebody whom it has not met."""
    company, seats, ended = PartnerPool(), threading.Barrier(2), threading.Barrier(2)
    for name in ("m1", "m2", "m3", "m4"):
        company.add(guest(name))

    def batch(*names: str) -> tuple[list[str], list[str]]:
        with company.batch(), company.lent([guest(name) for name in names], Deadline.after(60)) as lent:
            first = [mate.node.name for mate in lent.mates]
            seats.wait(10)
            further = [mate.node.name for mate in lent.more(proven=False)]
            assert [mate.node.name for mate in lent.mates] == [*first, *further]
        ended.wait(10)
        return first, further

    with ThreadPoolExecutor(2) as pool:
        one, other = (pool.submit(batch, *names) for names in (("n0", "n1"), ("n2", "n3")))
        assert one.result()[0] == other.result()[1]
        assert other.result()[0] == one.result()[1]


def test_a_stopped_wait_gives_no_mate_away_twice() -> None:
    """Its mates are the company's while it waits, and stay so."""
    company, cancelled = PartnerPool(), threading.Event()
    company.add(guest("m1"))
    company.add(guest("m2"))
    with company.batch():
        with company.batch(), company.lent([guest("n0"), guest("n1")], Deadline.after(60, cancelled)) as lent:
            cancelled.set()
            with pytest.raises(CancelledError):
                lent.more(proven=False)
            assert not lent.mates
        assert mates_of(company, guest("n2"), Deadline.after(60)) == ["m1", "m2"]
