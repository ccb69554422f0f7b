"""An event log is in the journal, for good, before anything of it is cleared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.bmc.logs import LogArchive
from clusterctl.fleet.decisions.permissions import require_serial
from clusterctl.fleet.errors import ClaimLostError, EdgeError, OutcomeUnknownError, UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.steps.event_log import ClearResult, EventLogClearer
from clusterctl.steps.executor.intent_log import IntentLog
from tests.events import data_of
from tests.steps.fakes import FakeBmc, FixedClock, address_of, identified, inventory, seen

LOG = "/redfish/v1/Systems/1/LogServices/SEL"
NODE = NodeId("id-n1")
TWO = {LOG: frozenset({"1 a fan failed", "2 it is well"})}


@dataclass
class Keeper(FakeBmc):
    """A BMC with a log. `trouble` is what clearing it ends with; `book` is looked at when it is to be cleared."""

    entries: dict[str, frozenset[str]] = field(default_factory=lambda: dict(TWO))
    trouble: EdgeError | None = None
    book: SqlJournal | None = None
    cleared: list[LogArchive] = field(default_factory=list)
    events_before: list[str] = field(default_factory=list)

    def archive_log(self, deadline: Deadline) -> Observed[LogArchive]:
        assert not isinstance(self.report, EdgeError)
        return Observed(LogArchive(self.report.serial, self.entries), seen("the whole log"))

    def clear_log(self, archive: LogArchive, deadline: Deadline) -> Observed[None]:
        deadline.check("clearing")
        assert self.book is not None
        self.events_before = kinds(self.book)
        self.cleared.append(archive)
        if self.trouble is not None:
            raise self.trouble
        self.entries = {}
        return Observed(None, seen("cleared"))


def kinds(book: SqlJournal) -> list[str]:
    return [event.kind.value for event in acts_of(book)]


def acts_of(book: SqlJournal) -> list[Any]:
    return [e for e in book.history(Stream.NODE, NODE) if e.kind in (Kind.ACT_INTENDED, Kind.ACT_OBSERVED)]


@dataclass
class Site:
    book: SqlJournal
    bmc: Keeper

    def open(self, address: BmcAddress, deadline: Deadline) -> Keeper:
        return self.bmc

    def clear(self) -> ClearResult:
        state = self.book.state(NODE)
        claims = self.book.claim([state.id], "r").granted
        try:
            clearing = EventLogClearer(self, address_of, self.book, 4)
            order = [(state, require_serial(state))]
            (found,) = clearing.clear(order, "ticket 7", IntentLog(self.book, claims), Deadline.after(60))
            return found
        finally:
            self.book.release(claims.values())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    identified(book, "n1", "N1")
    yield Site(book, Keeper(inventory("N1"), book=book))
    book.close()


def test_kept_intended_cleared_observed(site: Site) -> None:
    """When the BMC is asked to clear it, the log can be read from the journal, and the intent names it."""
    found = site.clear()
    assert (found.entries, found.error) == (2, None)
    assert site.bmc.events_before == ["act.intended"]
    intended, observed = acts_of(site.book)
    assert dict(data_of(intended)) == {"act": "log.clear", "target": "N1", "reason": "ticket 7", "details": None}
    assert intended.evidence == found.kept
    kept = site.book.evidence(intended.evidence[0])
    assert kept is not None
    assert kept.content == b"the whole log"
    assert data_of(observed)["message"] == "2 entries, kept"
    assert site.book.state(NODE).open_acts == ()


def test_a_journal_that_cannot_keep_it(site: Site) -> None:
    """Nothing is intended, nothing is cleared."""

    class Full:
        """Its disk is full."""

        def __init__(self, inner: SqlJournal) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        def store(self, evidence: Sequence[Evidence]) -> None:
            raise EdgeError("the disk is full")

    state = site.book.state(NODE)
    claims = site.book.claim([state.id], "r").granted
    clearing = EventLogClearer(site, address_of, Full(site.book), 4)  # type: ignore[arg-type]
    (found,) = clearing.clear([(state, Serial("N1"))], "why", IntentLog(site.book, claims), Deadline.after(60))
    assert str(found.error) == "the disk is full"
    assert site.bmc.cleared == []
    assert acts_of(site.book) == []


def test_another_machine(site: Site) -> None:
    """Its log is neither kept as this node's nor cleared."""
    site.bmc.report = inventory("N9")
    assert "belongs to machine N9" in str(site.clear().error)
    assert site.bmc.cleared == []
    assert acts_of(site.book) == []


def test_an_empty_log(site: Site) -> None:
    """There is nothing to do, and nothing is written of it."""
    site.bmc.entries = {LOG: frozenset()}
    assert (site.clear().entries, kinds(site.book)) == (0, [])
    assert site.bmc.cleared == []


@pytest.mark.parametrize(
    ("trouble", "word"),
    [(EdgeError("the BMC refuses"), "failed"), (OutcomeUnknownError("no answer"), "unknown")],
)
def test_what_fails_is_written(site: Site, trouble: EdgeError, word: str) -> None:
    """With what was kept; the same order again keeps it again and clears."""
    site.bmc.trouble = trouble
    found = site.clear()
    assert found.error is trouble
    assert found.kept
    assert data_of(acts_of(site.book)[-1])["result"] == word
    site.bmc.trouble = None
    assert site.clear().entries == 2


def test_a_claim_that_is_lost(site: Site) -> None:
    """Nothing more is written; the intent stands, and the next order looks first."""
    site.bmc.trouble = ClaimLostError("another run has it")
    assert isinstance(site.clear().error, ClaimLostError)
    assert kinds(site.book) == ["act.intended"]
    site.bmc.trouble, site.bmc.entries = None, {}
    assert site.clear().error is None


def test_nodes_that_may_be_asked() -> None:
    """Only a machine whose serial is known."""
    with pytest.raises(UsageError, match="serial is not known"):
        require_serial(NodeState(NODE, "n1"))
