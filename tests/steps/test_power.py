"""Power by an operator's order: intended before, observed after, on the proven machine only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.decisions.permissions import PowerOrder, power_permitted
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClaimLostError,
    ClusterctlError,
    EdgeError,
    UsageError,
)
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import NodeId, Serial, Stage
from clusterctl.fleet.state import NodeState, OperatorHold
from clusterctl.ports import BmcAddress, Deadline, Post, Power
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import RebootPermits, reboot_pool, unlimited
from clusterctl.steps.power import PowerResult, PowerSwitch
from tests.events import data_of
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FakeBmc, FixedClock, address_of, identified, inventory, seen

NAMES = ("n1", "n2", "n3")
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@dataclass
class Machine(FakeBmc):
    """One that can be switched; `trouble` is raised instead."""

    trouble: ClusterctlError | None = None
    done: list[str] = field(default_factory=list)

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        return self._do(power.value, power, serial, deadline)

    def cycle_power(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        return self._do("cycle", Power.ON, serial, deadline)

    def _do(self, what: str, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        deadline.check("switching")
        if self.trouble is not None:
            raise self.trouble
        self.done.append(f"{what} {serial}")
        self.state = power
        return Observed(power, seen(what))


@dataclass
class Site:
    book: SqlJournal
    machines: dict[str, Machine]
    acts: IntentLog = field(init=False)

    def open(self, address: BmcAddress, deadline: Deadline) -> Machine:
        return self.machines[address.host]

    def switch(
        self, order: PowerOrder, deadline: Deadline | None = None, *, permits: RebootPermits = unlimited
    ) -> dict[str, PowerResult]:
        states = [self.book.state(NodeId(f"id-{name}")) for name in NAMES]
        claims = self.book.claim([state.id for state in states], "r").granted
        try:
            acts = self.acts = IntentLog(self.book, claims)
            switcher = PowerSwitch(self, address_of, self.book, 4, permits, boot_s=600.0)
            nodes = [(state, power_permitted(state, order, NOW)) for state in states]
            found = switcher.switch(nodes, order, "ticket 7", acts, deadline or Deadline.after(60))
            return {item.name: item for item in found}
        finally:
            self.book.release(claims.values())

    def events(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        """The acts that were written of a node."""
        acts = (Kind.ACT_INTENDED, Kind.ACT_OBSERVED)
        events = self.book.history(Stream.NODE, NodeId(f"id-{name}"))
        return [(event.kind.value, dict(data_of(event))) for event in events if event.kind in acts]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    for name in NAMES:
        identified(book, name, name.upper())
    yield Site(book, {name: Machine(inventory(name.upper()), state=Power.OFF) for name in NAMES})
    book.close()


@pytest.mark.parametrize(
    ("order", "done", "power"),
    [
        (PowerOrder.ON, "on N1", Power.ON),
        (PowerOrder.OFF, "off N1", Power.OFF),
        (PowerOrder.CYCLE, "cycle N1", Power.ON),
    ],
)
def test_intended_done_observed(site: Site, order: PowerOrder, done: str, power: Power) -> None:
    """With the operator's reason before, the power that was seen after, and nothing left open."""
    found = site.switch(order)
    assert [found[name].power for name in NAMES] == [power] * 3
    assert site.machines["n1"].done == [done]
    assert site.events("n1") == [
        ("act.intended", {"act": f"power.{order.value}", "target": "N1", "reason": "ticket 7", "details": None}),
        (
            "act.observed",
            {"act": f"power.{order.value}", "result": "done", "message": power.value, "component": ""},
        ),
    ]
    assert site.book.state(NodeId("id-n1")).open_acts == ()


def test_one_that_fails_does_not_keep_the_others(site: Site) -> None:
    """Its error is its own outcome, and stands in its history."""
    site.machines["n2"].trouble = EdgeError("the BMC refuses")
    site.machines["n3"].report = AuthenticationError("rejected")
    found = site.switch(PowerOrder.ON)
    assert (found["n1"].power, found["n1"].error) == (Power.ON, None)
    assert str(found["n2"].error) == "the BMC refuses"
    events = site.events("n2")[-1][1]
    assert (events["result"], events["message"]) == ("failed", "the BMC refuses")
    assert isinstance(found["n3"].error, AuthenticationError)


def test_a_claim_that_is_lost(site: Site) -> None:
    """Another run has the node now: nothing more is written, and the others are done all the same."""

    class Taken(Machine):
        def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
            site.acts.lease.lose(NodeId("id-n1"), "another run")
            raise EdgeError("it was cut off")

    site.machines["n1"] = Taken(inventory("N1"))
    found = site.switch(PowerOrder.OFF)
    assert isinstance(found["n1"].error, ClaimLostError)
    assert found["n2"].power is Power.OFF
    assert [kind for kind, _ in site.events("n1")] == ["act.intended"]


def test_stopped_before_it_began(site: Site) -> None:
    """Nothing is intended, nothing done."""
    deadline = Deadline.after(60)
    deadline.cancelled.set()
    found = site.switch(PowerOrder.OFF, deadline)
    assert all(isinstance(item.error, CancelledError) for item in found.values())
    assert site.events("n1") == []


def test_stopped_during_it(site: Site) -> None:
    """What was begun stays intended: the same order again looks first."""
    site.machines["n1"].trouble = CancelledError("stopped")
    site.switch(PowerOrder.OFF)
    assert [act.act for act in site.book.state(NodeId("id-n1")).open_acts] == ["power.off"]


def test_status(site: Site) -> None:
    """Each machine's word, or why there is none; nothing is written."""
    site.machines["n2"].report = EdgeError("no answer")
    found = {item.name: item for item in PowerSwitch(site, address_of, site.book, 4).status(NAMES, Deadline.after(60))}
    assert (found["n1"].power, found["n2"].power) == (Power.OFF, Power.UNKNOWN)
    assert str(found["n2"].error) == "no answer"
    assert site.events("n1") == []


GOLD = NodeState(NodeId("id"), "n1", Stage.GOLD, serial=Serial("S"))


def test_gold_stays_on() -> None:
    """What is in the pool is switched on only; held, it may be switched off; so may what is no gold."""
    for order in (PowerOrder.OFF, PowerOrder.CYCLE):
        with pytest.raises(UsageError, match="it may run a job"):
            power_permitted(GOLD, order, NOW)
        assert power_permitted(replace(GOLD, hold=OperatorHold("alice", "why", NOW, None)), order, NOW) == "S"
        assert power_permitted(replace(GOLD, stage=Stage.INSTALLED), order, NOW) == "S"
    assert power_permitted(GOLD, PowerOrder.ON, NOW) == "S"


@pytest.mark.parametrize("node", [replace(GOLD, serial=None), replace(GOLD, stage=Stage.RETIRED)])
def test_an_unknown_or_absent_node_is_not_touched(node: NodeState) -> None:
    """Without a serial nothing proves the machine; a retired one is not the site's."""
    with pytest.raises(UsageError):
        power_permitted(node, PowerOrder.ON, NOW)


def test_one_reboots_at_a_time_where_the_site_wants_that(site: Site) -> None:
    """Each machine's self-test is over before the next one is switched on; to switch off needs no permit."""
    at_work, most = 0, 0
    pool = reboot_pool(site.book, 1)

    @contextmanager
    def counted(wanted: int, deadline: Deadline) -> Iterator[int]:
        nonlocal at_work, most
        with pool.taken(wanted, deadline) as count:
            at_work += 1
            most = max(most, at_work)
            yield count
            at_work -= 1

    for machine in site.machines.values():
        machine.tested = [Post.RUNNING, Post.RUNNING]
    found = site.switch(PowerOrder.ON, Deadline.after(1e6, timer=FakeTimer()), permits=counted)
    assert {name: item.power for name, item in found.items()} == dict.fromkeys(NAMES, Power.ON)
    assert all(not machine.tested for machine in site.machines.values())
    assert most == 1
    with pool.taken(1, Deadline.after(60)):
        assert site.switch(PowerOrder.OFF, permits=pool.taken)["n1"].error is None


def test_without_a_permit_nothing_is_switched(site: Site) -> None:
    """The error names the site's setting, and no act is intended."""
    pool = reboot_pool(site.book, 1)
    with pool.taken(1, Deadline.after(60)):
        found = site.switch(PowerOrder.ON, Deadline.after(30, timer=FakeTimer()), permits=pool.taken)
    assert all("fabric.reboots" in str(item.error) for item in found.values())
    assert not site.machines["n1"].done
    assert site.events("n1") == []
