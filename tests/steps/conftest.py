"""What tests of several steps share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusterctl.edges.journal import SqlJournal, open_journal
from tests.steps.fakes import FixedClock


@pytest.fixture
def book(tmp_path: Path, empty_journal: Path) -> Iterator[SqlJournal]:
    """An empty journal."""
    shutil.copy(empty_journal, tmp_path / "j.db")
    opened = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock())
    yield opened
    opened.close()
