"""The killer itself: it strikes where it is ordered to, once, and what a run had written by then stays."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from clusterctl.edges.journal import open_journal
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import NodeId
from lab.tests.lab_kit import ROOT
from tests.events import new_event
from tests.kills import catalogue
from tests.kills.diary import Diary, lines_of
from tests.kills.seams import Blow, Moment, Seam, Seams
from tests.kills.struck_ports import StruckJournal
from tests.steps.fakes import FixedClock

DIES = """
import sys
from collections.abc import Callable
from pathlib import Path
from tests.kills.seams import Blow, strike
from tests.kills.test_seams import described
described(Path(sys.argv[1]), [Blow.parse(sys.argv[2])], strike)
"""
APPEND = Seam("run", "append node.described", Moment.BEFORE)


def described(folder: Path, blows: list[Blow], strike: Callable[[Blow], None]) -> None:
    """Write three nodes into a journal with seams."""
    book = open_journal(f"sqlite:///{folder}/j.db", FixedClock())
    with Diary(folder / "diary") as diary:
        journal = StruckJournal(book, Seams(diary, blows, strike))
        for name in ("n1", "n2", "n3"):
            journal.append([new_event("node", name, Kind.NODE_DESCRIBED, {"name": name, "bmc": "192.0.2.1"})])
    book.close()


@pytest.mark.parametrize(("moment", "kept"), [(Moment.BEFORE, 1), (Moment.AFTER, 2)])
def test_a_kill_before_loses_the_event_and_one_after_does_not(tmp_path: Path, moment: Moment, kept: int) -> None:
    """Killed at the second append: before it one node is known, after it two, whole."""
    blow = Blow(Seam(APPEND.actor, APPEND.what, moment), nth=2)
    killed = subprocess.run([sys.executable, "-c", DIES, tmp_path, str(blow)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock())
    assert [state.name for state in book.states()] == ["n1", "n2", "n3"][:kept]
    assert book.state(NodeId("n1")).bmc == "192.0.2.1"
    book.close()
    lines = list(lines_of(tmp_path / "diary"))
    assert lines[-1]["blow"] == str(blow)
    assert len([line for line in lines if "seq" in line]) == kept


def test_a_run_is_struck_once(tmp_path: Path) -> None:
    """By the first blow that it comes to; the others wait for the next run."""
    struck: list[Blow] = []
    blows = [Blow(APPEND, nth=3), Blow(Seam("run", APPEND.what, Moment.AFTER), nth=1)]
    described(tmp_path, blows, struck.append)
    assert struck == [blows[1]]


def test_seams_are_recorded_in_their_order_with_their_times(tmp_path: Path) -> None:
    """A diary has what is done, how often, and how long it takes; blows are drawn from it by a seed."""
    described(tmp_path, [], lambda _: None)
    (entry,) = catalogue.recorded(lines_of(tmp_path / "diary"))
    assert (entry.actor, entry.what, entry.times) == ("run", "append node.described", 3)
    assert 0 < entry.seconds < 120
    drawn = catalogue.blows([entry], random.Random(1), 3)
    assert [blow.seam.moment for blow in drawn] == list(Moment)
    assert all(Blow.parse(str(blow)) == blow for blow in drawn)


def test_the_shipped_recording_is_whole() -> None:
    """Every step of the way is in it, and it is read as it was written."""
    entries = catalogue.shipped()
    assert {entry.actor for entry in entries} >= {"run", "discover", "install", "configure", "cable", "burnin", "admit"}
    assert catalogue.FILE.read_text() == catalogue.text_of(entries)
