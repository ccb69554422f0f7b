"""What tests of several steps share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.journal import SqlJournal, open_journal
from tests.steps.fakes import FixedClock


@pytest.fixture
def book(tmp_path: Path) -> Iterator[SqlJournal]:
    """An empty journal."""
    opened = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock())
    yield opened
    opened.close()
