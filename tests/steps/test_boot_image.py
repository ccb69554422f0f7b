"""Booting machines from an image: intended before, on the proven machine only, ejected where it cannot boot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.bmc.boot import BootOnce
from clusterctl.fleet.bmc.screen import Screen
from clusterctl.fleet.errors import ClusterctlError, EdgeError, OutcomeUnknownError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.ports import BmcAddress, Claim, Deadline, Post, Power
from clusterctl.ports.deadline import SYSTEM_TIMER, Timer
from clusterctl.steps.boot_image import ImageBooter, ImageBootResult
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NoPermitError, RebootPermits, reboot_pool, unlimited
from tests.events import data_of
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FakeBmc, FixedClock, address_of, identified, inventory, seen

URI = "http://192.0.2.1/installer.iso"


@dataclass
class Machine(FakeBmc):
    """A BMC with one virtual drive; `trouble` is raised by the named call."""

    trouble: dict[str, ClusterctlError] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    asked_for_screen: Callable[[], Mapping[NodeId, Claim]] | None = None
    seen_free: Mapping[NodeId, Claim] | None = None

    def screen(self, deadline: Deadline) -> Observed[Screen | None]:
        if self.asked_for_screen is not None:
            self.seen_free = self.asked_for_screen()
        return super().screen(deadline)

    def insert_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[str]:
        return Observed(uri, self._do("insert", f"insert {uri} {serial}", deadline))

    def eject_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        return Observed(None, self._do("eject", f"eject {uri} {serial}", deadline))

    def boot_once(self, wish: BootOnce, serial: Serial, deadline: Deadline) -> Observed[BootOnce]:
        return Observed(wish, self._do("boot", f"boot {wish} {serial}", deadline))

    def cycle_power(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        return Observed(Power.ON, self._do("cycle", f"cycle {serial}", deadline))

    def _do(self, call: str, text: str, deadline: Deadline) -> Any:
        deadline.check(call)
        if call in self.trouble:
            raise self.trouble[call]
        self.calls.append(text)
        return seen(call)


@dataclass
class Site:
    """One node, its journal and its BMC."""

    book: SqlJournal
    machine: Machine
    screen_s: float = 0.0
    permits: RebootPermits = unlimited

    def open(self, address: BmcAddress, deadline: Deadline) -> Machine:
        return self.machine

    def order(self, act: str = "boot", timer: Timer = SYSTEM_TIMER) -> ImageBootResult:
        state = self.book.state(NodeId("id-n1"))
        claims = self.book.claim([state.id], "r").granted
        try:
            booter = ImageBooter(self, address_of, self.book, 4, screen_s=self.screen_s, permits=self.permits)
            call = booter.boot if act == "boot" else booter.eject
            acts = IntentLog(self.book, claims)
            (found,) = call([(state, Serial("S1"))], URI, "ticket 7", acts, Deadline.after(2000, timer=timer))
            return found
        finally:
            self.book.release(claims.values())

    def acts(self) -> list[tuple[Kind, dict[str, Any]]]:
        events = self.book.history(Stream.NODE, NodeId("id-n1"))
        return [(event.kind, data_of(event)) for event in events if event.kind.value.startswith("act.")]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    identified(book, "n1", "S1")
    yield Site(book, Machine(inventory("S1")))
    book.close()


def test_inserted_overridden_and_cycled(site: Site) -> None:
    """In this order, each with the serial; intent and result are in the journal, with evidence."""
    assert site.order() == ImageBootResult("n1", inserted=True)
    assert site.machine.calls == [f"insert {URI} S1", "boot cd S1", "cycle S1"]
    (intended, intent), (observed, result) = site.acts()
    assert (intended, observed) == (Kind.ACT_INTENDED, Kind.ACT_OBSERVED)
    assert intent == {"act": "media.boot", "target": "S1", "reason": "ticket 7", "details": {"uri": URI}}
    assert result == {"act": "media.boot", "result": "done", "message": "inserted, booted", "component": ""}
    assert not site.book.state(NodeId("id-n1")).open_acts


def test_what_it_shows_after_the_boot_is_kept(site: Site) -> None:
    """Once the self-test is over and some time has passed; the boot itself is in the journal before that."""
    site.screen_s = 60.0
    site.machine.tested = [Post.RUNNING, Post.RUNNING, Post.DONE]
    site.machine.shown = Screen("text", b"Loading the installer")
    timer = FakeTimer()
    found = site.order(timer=timer)
    assert timer.now() == 10 + 10 + 60
    assert found == ImageBootResult("n1", inserted=True, screen=seen("screen")[0].digest)
    messages = [data["message"] for kind, data in site.acts() if kind is Kind.ACT_OBSERVED]
    assert messages == ["inserted, booted", "its screen after the boot is kept"]
    kept = site.book.evidence(seen("screen")[0].digest)
    assert kept is not None
    assert not site.book.state(NodeId("id-n1")).open_acts


def test_a_screen_that_cannot_be_had_changes_nothing(site: Site) -> None:
    """The machine has booted: one result, and no failure."""
    site.machine.shown = EdgeError("no such action")
    assert site.order() == ImageBootResult("n1", inserted=True)
    assert [data["result"] for kind, data in site.acts() if kind is Kind.ACT_OBSERVED] == ["done"]


def test_it_waits_for_its_turn_among_the_hosts_that_come_on(site: Site) -> None:
    """Without a permit nothing is inserted and nothing intended; with one it is kept until the screen was read."""
    pool = reboot_pool(site.book, 1)
    site.permits = pool.taken
    with pool.taken(1, Deadline.after(60)):
        refused = site.order(timer=FakeTimer())
        assert isinstance(refused.error, NoPermitError)
        assert site.machine.calls == []
        assert site.acts() == []
        assert site.order("eject") == ImageBootResult("n1", inserted=False)
    site.machine.asked_for_screen = lambda: pool.take(1)
    assert site.order().inserted is True
    assert site.machine.seen_free == {}
    assert len(pool.take(1)) == 1


def test_ejected(site: Site) -> None:
    """By an order of its own; nothing is switched."""
    assert site.order("eject") == ImageBootResult("n1", inserted=False)
    assert site.machine.calls == [f"eject {URI} S1"]


def test_another_machine(site: Site) -> None:
    """A BMC that proves to be another machine's refuses the insertion: nothing follows it."""
    site.machine.trouble["insert"] = EdgeError("this BMC belongs to machine S9, not to S1: nothing was changed")
    found = site.order()
    assert isinstance(found.error, EdgeError)
    assert site.machine.calls == []
    assert site.acts()[-1][1]["result"] == "failed"


@pytest.mark.parametrize("call", ["boot", "cycle"])
def test_an_image_that_cannot_be_booted_is_ejected(site: Site, call: str) -> None:
    """The drive is free again; the first error stands."""
    site.machine.trouble[call] = EdgeError("no")
    found = site.order()
    assert found.error is site.machine.trouble[call]
    assert site.machine.calls[-1] == f"eject {URI} S1"


def test_an_unknown_outcome_leaves_the_image(site: Site) -> None:
    """The machine may be booting from it."""
    site.machine.trouble["cycle"] = OutcomeUnknownError("no answer")
    assert site.order().inserted is None
    assert not any(text.startswith("eject") for text in site.machine.calls)
