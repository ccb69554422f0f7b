"""Which node a serial belongs to: asked for each machine of a fleet, it reads only what has changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.known_serials import KnownSerials
from tests.events import new_event
from tests.steps.fakes import FixedClock, identified, inventory


@dataclass
class CountingJournal:
    """Meets `Journal` as far as it is read here; `read`: how many nodes each reading returned."""

    inner: SqlJournal
    read: list[int] = field(default_factory=list)

    def last_seq(self) -> int:
        return self.inner.last_seq()

    def summaries(self, since: int = 0) -> tuple[NodeSummary, ...]:
        found = self.inner.summaries(since)
        self.read.append(len(found))
        return found


@pytest.fixture
def book(tmp_path: Path) -> Iterator[SqlJournal]:
    journal = open_journal(f"sqlite:///{tmp_path}/journal.db", FixedClock())
    with closing(journal):
        yield journal


def report(book: SqlJournal, name: str, found: Inventory) -> None:
    """Write what the BMC of a node reports now."""
    data = {"inventory": inventory_to_data(found), "sku": "lab", "root_disk": None}
    book.append([new_event("node", f"id-{name}", Kind.NODE_IDENTIFIED, data)])


def test_only_nodes_with_new_events_are_read(book: SqlJournal) -> None:
    """All nodes once, then each that has changed, so that discovering a fleet does not read it once for each node."""
    for number in range(20):
        identified(book, f"n{number:02d}", f"S{number}")
    counting = CountingJournal(book)
    known = KnownSerials(counting)  # type: ignore[arg-type]
    assert (known()["S7"], known().get("S20")) == ("n07", None)
    identified(book, "n20", "S20")
    assert known()["S20"] == "n20"
    assert counting.read == [20, 1]


def test_a_machine_with_another_serial_leaves_its_former_one(book: SqlJournal) -> None:
    """A serial that no node has any more belongs to none."""
    identified(book, "n1", "S1")
    known = KnownSerials(book)
    assert known() == {"S1": "n1"}
    report(book, "n1", inventory("S2"))
    assert known() == {"S2": "n1"}


def test_a_serial_of_several_machines_belongs_to_none(book: SqlJournal) -> None:
    """Two nodes of one enclosure: its serial is an alias of both."""
    for name in ("n1", "n2"):
        identified(book, name, f"S-{name}")
        aliases = (Serial("CHASSIS"), Serial(f"BOARD-{name}"))
        report(book, name, replace(inventory(f"S-{name}"), aliases=aliases))
    assert KnownSerials(book)() == {"S-n1": "n1", "S-n2": "n2", "CHASSIS": "", "BOARD-n1": "n1", "BOARD-n2": "n2"}
