"""Each test of the journal's promises runs on both engines: it asks for `url`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from tests.edges.journal.life import StepClock

Open = Callable[..., SqlJournal]


@pytest.fixture
def opened(url: str) -> Iterator[Open]:
    """Opens the journal at `url`, as often as one likes; `open_journal`'s keywords."""
    books: list[SqlJournal] = []

    def one(run: str = "r1", **settings: Any) -> SqlJournal:
        books.append(open_journal(url, StepClock(), Holder(run, **settings)))
        return books[-1]

    yield one
    for book in books:
        book.close()


@pytest.fixture
def book(opened: Open) -> SqlJournal:
    return opened()
