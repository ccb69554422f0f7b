"""Each test of the journal's promises runs on both engines: it asks for `url`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from tests.edges.journal.life import StepClock

Open = Callable[..., SqlJournal]


@pytest.fixture
def opened(url: str, tmp_path: Path, empty_journal: Path) -> Iterator[Open]:
    """Opens the journal at `url`, as often as one likes; `open_journal`'s keywords."""
    books: list[SqlJournal] = []
    if url.startswith("sqlite"):
        shutil.copy(empty_journal, tmp_path / "journal.db")

    def one(run: str = "r1", **settings: Any) -> SqlJournal:
        books.append(open_journal(url, StepClock(), Holder(run, **settings)))
        return books[-1]

    yield one
    for book in books:
        book.close()


@pytest.fixture
def book(opened: Open) -> SqlJournal:
    return opened()
