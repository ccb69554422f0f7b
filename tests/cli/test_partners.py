"""The partners that a resumed run may measure its nodes with: only nodes that are certainly idle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.edges.pool import FilePool
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Step
from clusterctl.fleet.partners import ENOUGH
from clusterctl.operations.partners import unpublished_partners
from clusterctl.ports import Journal
from tests.events import new_event
from tests.steps.fakes import FixedClock, identified

WAY = tuple(Step)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/j.db"


@pytest.fixture
def book(url: str) -> Iterator[SqlJournal]:
    opened = open_journal(url, FixedClock(), Holder("now"))
    identified(opened, "n0", "SN-n0", stage="cabled")
    yield opened
    opened.close()


def golden(url: str, run: str, names: Sequence[str], *, ended: bool) -> None:
    """A run of before that made nodes gold, and came to its end or not."""
    journal = open_journal(url, FixedClock(), Holder(run))
    for name in names:
        identified(journal, name, f"SN-{name}", stage="gold")
    if ended:
        journal.append([new_event("run", run, Kind.RUN_FINISHED)])
    journal.close()


def partners(journal: Journal, pool: FilePool, way: Sequence[Step] = WAY) -> list[str]:
    return [node.name for node in unpublished_partners(journal, pool, journal.summaries(), way)]


def pool(folder: Path, *published: str) -> FilePool:
    """A pool that was published with these names, or never."""
    made = FilePool(folder / "gold.json", "site", simulated=True, clock=FixedClock())
    if published:
        made.publish(dict.fromkeys(published, "192.0.2.1"))
    return made


def test_what_a_dead_run_never_published_is_company(book: SqlJournal, url: str, tmp_path: Path) -> None:
    """Its nodes are gold and no job can have started on them: the one that it left behind is not measured alone."""
    golden(url, "killed", ["n1", "n2"], ended=False)
    assert partners(book, pool(tmp_path)) == ["n1", "n2"]
    assert partners(book, pool(tmp_path, "n1")) == ["n2"]


def test_a_node_that_may_have_jobs_is_left_alone(book: SqlJournal, url: str, tmp_path: Path) -> None:
    """One proof is not enough: neither a lost pool file nor an unreadable one makes a node idle."""
    golden(url, "ended", ["n1"], ended=True)
    golden(url, "killed", ["n2"], ended=False)
    published = pool(tmp_path, "n1", "n2")
    assert partners(book, published) == []
    published.file.write_text("not ours")
    assert partners(book, published) == []
    published.file.unlink()
    assert partners(book, published) == ["n2"]


def test_no_partner_is_taken_without_need(book: SqlJournal, url: str, tmp_path: Path) -> None:
    """Only where a node is on its way to its burn-in, and then a few."""
    golden(url, "killed", [f"g{number}" for number in range(ENOUGH + 3)], ended=False)
    assert partners(book, pool(tmp_path), (Step.DISCOVER, Step.INSTALL)) == []
    assert len(partners(book, pool(tmp_path))) == ENOUGH
