"""The fleet by name, as every command finds it in the journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from clusterctl.edges.journal import Holder, open_journal
from clusterctl.edges.journal.journal import SqlJournal
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from tests.steps.fakes import FixedClock, identified


@dataclass
class CountingJournal:
    """A journal that counts how often the whole fleet is read."""

    journal: SqlJournal
    fleet_reads: int = 0

    def names(self) -> Mapping[str, NodeId]:
        self.fleet_reads += 1
        return self.journal.names()

    def state(self, node: NodeId) -> NodeState:
        return self.journal.state(node)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[CountingJournal]:
    kept = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r"))
    for name, serial in (("n1", "S1"), ("n2", "S2"), ("n3", "S3")):
        identified(kept, name, serial, "configured")
    yield CountingJournal(kept)
    kept.close()


def context(journal: CountingJournal, *described: str) -> SiteContext:
    site = SimpleNamespace(nodes=[SimpleNamespace(name=name) for name in described])
    return SiteContext(site, journal, "r")  # type: ignore[arg-type]


def test_many_are_found_by_one_reading_of_the_fleet(journal: CountingJournal) -> None:
    """In the order asked for; thousands of readings of thousands of nodes would take minutes."""
    found = context(journal).named(["n3", "n1"])
    assert [(node.name, node.serial) for node in found] == [("n3", "S3"), ("n1", "S1")]
    assert journal.fleet_reads == 1


@pytest.mark.parametrize(
    ("described", "words"), [(("n9",), "the journal has no event of n9 yet"), ((), "there is no node 'n9'")]
)
def test_one_that_is_not_there_is_named(journal: CountingJournal, described: tuple[str, ...], words: str) -> None:
    """And whether the site knows it."""
    with pytest.raises(UsageError, match=words):
        context(journal, *described).named(["n1", "n9"])
