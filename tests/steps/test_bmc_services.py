"""What is set on a BMC is in the journal before it is sent, and a killed run is followed by one that looks first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.bmc.services import Service, ServiceState, WantedServices
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.steps.bmc_services import BmcServiceSetter, ServicesResult
from clusterctl.steps.executor.intent_log import IntentLog
from tests.events import data_of
from tests.steps.fakes import FixedClock, address_of, identified, seen

NODE = NodeId("id-n1")
WANTED = WantedServices(ntp=("10.0.0.1",), syslog="10.0.0.3")
Observation = Observed[tuple[ServiceState, ...]]


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Bmc:
    """A BMC with a clock and no syslog. `trouble` is what setting it ends with, before or `after` it is done."""

    right: bool = False
    trouble: BaseException | None = None
    after: bool = False
    orders: int = 0
    events_before: list[str] = field(default_factory=list)
    book: SqlJournal | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """Nothing is open."""

    def services(self, wanted: WantedServices, serial: Serial, deadline: Deadline) -> Observation:
        deadline.check("reading")
        clock = ServiceState(service=Service.CLOCK, wanted=wanted.ntp[0], found="off", right=self.right)
        log = ServiceState(service=Service.SYSLOG, wanted=wanted.syslog, found="it takes none", right=None)
        return Observed((clock, log), seen(f"of {serial}"))

    def set_services(self, wanted: WantedServices, serial: Serial, deadline: Deadline) -> Observation:
        assert self.book is not None
        self.events_before = kinds(self.book)
        self.orders += 1
        if self.trouble is not None and not self.after:
            raise self.trouble
        self.right = True
        if self.trouble is not None:
            raise self.trouble
        return self.services(wanted, serial, deadline)


def kinds(book: SqlJournal) -> list[str]:
    wanted = (Kind.ACT_INTENDED, Kind.ACT_OBSERVED)
    return [event.kind.value for event in book.history(Stream.NODE, NODE) if event.kind in wanted]


@dataclass
class Site:
    book: SqlJournal
    bmc: Bmc

    def open_services(self, address: BmcAddress, deadline: Deadline) -> Bmc:
        return self.bmc

    def set(self) -> ServicesResult:
        state = self.book.state(NODE)
        claims = self.book.claim([state.id], "r").granted
        try:
            setter = BmcServiceSetter(self, address_of, self.book, WANTED, 4)
            (found,) = setter.set([(state, Serial("N1"))], IntentLog(self.book, claims), Deadline.after(60))
            return found
        finally:
            self.book.release(claims.values())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    identified(book, "n1", "N1")
    yield Site(book, Bmc(book=book))
    book.close()


def test_intended_set_observed(site: Site) -> None:
    """The intent names what differs; what the BMC has no way for is left, and is no success."""
    found = site.set()
    assert (found.changed, [one.service for one in found.wrong]) == (True, [Service.SYSLOG])
    assert site.bmc.events_before == ["act.intended"]
    intent = next(event for event in site.book.history(Stream.NODE, NODE) if event.kind is Kind.ACT_INTENDED)
    assert data_of(intent)["reason"] == "clock: off; wanted: 10.0.0.1"
    assert site.book.state(NODE).open_acts == ()


def test_nothing_differs(site: Site) -> None:
    """Then nothing is intended and nothing sent."""
    site.bmc.right = True
    assert (site.set().changed, kinds(site.book), site.bmc.orders) == (False, [], 0)


def test_a_refusal_is_recorded(site: Site) -> None:
    """The act is over, with its reason, and is done again by the next order."""
    site.bmc.trouble = EdgeError("the BMC refuses it")
    assert site.set().error is site.bmc.trouble
    assert (kinds(site.book)[-1], site.book.state(NODE).open_acts) == ("act.observed", ())


@pytest.mark.parametrize(("after", "orders"), [(False, 2), (True, 1)])
def test_after_a_kill_the_next_order_looks_first(site: Site, *, after: bool, orders: int) -> None:
    """What was set before the kill is not set again; the act is closed in any case."""
    site.bmc.trouble, site.bmc.after = Killed(), after
    with pytest.raises(Killed):
        site.set()
    assert [act.act for act in site.book.state(NODE).open_acts] == [Act.BMC_SERVICES]
    site.bmc.trouble = None
    site.set()
    assert (site.bmc.orders, site.book.state(NODE).open_acts) == (orders, ())
