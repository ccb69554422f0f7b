"""Where the nodes of a journal are reached: each play asks, and only what has changed is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.edges.journal import SqlJournal, open_journal
from clusterctl.fleet.errors import ConflictError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.operations.known_hosts import KnownHost, KnownHosts
from tests.edges.journal.life import added
from tests.edges.journal.test_journal import EVENTS as ALL_EVENTS
from tests.events import new_event
from tests.steps.fakes import FixedClock, identified


@dataclass
class CountingJournal:
    """Meets `Journal` as far as it is read here; `read`: how many states each reading returned."""

    inner: SqlJournal
    read: list[int] = field(default_factory=list)

    def last_seq(self) -> int:
        return self.inner.last_seq()

    def changed(self, kinds: Collection[Kind], seq: int) -> Collection[NodeId]:
        return self.inner.changed(kinds, seq)

    def each_state(self) -> Iterator[NodeState]:
        states = list(self.inner.each_state())
        self.read.append(len(states))
        return iter(states)

    def states_of(self, nodes: Iterable[NodeId]) -> Mapping[NodeId, NodeState]:
        states = self.inner.states_of(nodes)
        self.read.append(len(states))
        return states


@pytest.fixture
def book(tmp_path: Path) -> Iterator[SqlJournal]:
    journal = open_journal(f"sqlite:///{tmp_path}/journal.db", FixedClock())
    with closing(journal):
        yield journal


def test_a_play_reads_no_node_that_has_not_changed(book: SqlJournal) -> None:
    """Twenty nodes are read once. Fifty plays later, each of which wrote events of the nodes, one address has changed:
    one node is read.
    """
    names = [f"n{number:02d}" for number in range(20)]
    for name in names:
        identified(book, name, f"S-{name}")
    nodes = [book.names()[name] for name in names]
    counting = CountingJournal(book)
    known = KnownHosts(counting)  # type: ignore[arg-type]
    assert len(known()) == len(nodes)
    for _ in range(50):
        book.append([new_event("node", node, Kind.STEP_STARTED, {"step": "configure"}) for node in nodes])
        known()
        known.adapters()
    book.append([new_event("node", nodes[3], Kind.NODE_ADDRESSED, {"address": "192.0.2.3"})])
    assert known()["n03"].address == "192.0.2.3"
    assert counting.read == [len(nodes), 1]


@settings(deadline=None)
@given(st.lists(ALL_EVENTS, min_size=1, max_size=6))
def test_it_is_what_the_states_have_after_any_events(events: list[NewEvent]) -> None:
    """Whatever is written, no kind of event changes a host without being noticed."""
    with closing(open_journal("sqlite://", FixedClock())) as book:
        book.append([added()])
        known = KnownHosts(book)
        for event in events:
            with suppress(ConflictError):  # what the stage table does not allow
                book.append([event])
            assert known() == {state.name: KnownHost.of(state) for state in book.states()}
