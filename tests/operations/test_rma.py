"""Returns of parts to vendors: their way, their age in lists and reports, and the history of both parts."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.durations import parse_due
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.reporting.rma import RmaStage, rmas
from clusterctl.operations.context import open_site
from clusterctl_cli.main import run
from clusterctl_cli.render_rma import rma_line
from tests.cli.site_of_three import append, write
from tests.events import new_event, written
from tests.steps.fakes import NOW

SEEN = {"component": "gpu", "slot": "Video.Slot.21-1", "model": "H100", "node": "n2"}
OPEN = ("open", "1650", "--case", "4711", "--reason", "2 uncorrectable errors", "--due", "14d")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The GPU with serial 1650 was seen in n2."""
    made = write(tmp_path)
    append(made, [new_event("part", "1650", Kind.PART_SEEN, SEEN)])
    return made


def rma(site: Path, *words: str) -> int:
    return run(["rma", *words, "--yes", "--site", str(site)])


def listed(site: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert run(["rma", "list", "--json", *words, "--site", str(site)]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["rmas"]
    return found


def test_the_whole_way(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Opened, sent, received, closed; the new serial knows where it comes from."""
    assert rma(site, *OPEN) == 0
    (one,) = listed(site, capsys)
    assert (one["stage"], one["case"], one["node"], one["late"]) == ("opened", "4711", "n2", False)
    assert rma(site, "ship", "1650", "--tracking", "1Z999") == 0
    assert rma(site, "receive", "1650", "--serial", "1999") == 0
    (one,) = listed(site, capsys)
    assert (one["stage"], one["replacement"], one["tracking"]) == ("received", "1999", "1Z999")
    assert run(["report", "--site", str(site)]) == 0
    assert "gpu Video.Slot.21-1 of n2, serial 1650: case 4711, received" in capsys.readouterr().out
    assert rma(site, "close", "1650", "--reason", "fitted") == 0
    assert listed(site, capsys) == []
    assert [one["stage"] for one in listed(site, capsys, "--all")] == ["closed"]
    context = open_site(site)
    kinds = [event.kind for event in context.journal.history(Stream.PART, "1650")]
    assert kinds[1:] == [Kind.RMA_OPENED, Kind.RMA_SHIPPED, Kind.RMA_RECEIVED, Kind.RMA_CLOSED]
    (delivered,) = context.journal.history(Stream.PART, "1999")
    assert str(delivered.payload) == "delivered by RMA case 4711, for 1650"
    context.journal.close()
    assert rma(site, *OPEN) == 0
    assert [one["stage"] for one in listed(site, capsys)] == ["opened"]


def test_a_part_is_named_by_its_slot_in_a_node(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the serial that a finding names."""
    assert rma(site, "open", "gpu3", "--node", "n2", "--case", "1", "--reason", "bad") == 0
    (one,) = listed(site, capsys)
    assert (one["name"], one["part"]) == ("1650", "gpu 3")
    assert rma(site, "open", "gpu9", "--node", "n2", "--case", "1", "--reason", "bad") == 2


@pytest.mark.parametrize(
    "words",
    [
        ("ship", "1650"),
        ("receive", "1650", "--serial", "1999"),
        ("close", "1650", "--reason", "x"),
        ("open", "unknown", "--case", "1", "--reason", "x"),
        ("open", "1650", "--case", "", "--reason", "x"),
        ("open", "1650", "--case", "1", "--reason", " "),
        ("open", "1650", "--case", "1", "--reason", "x", "--due", "2020-01-01"),
        ("open", "1650", "--case", "1" * 200, "--reason", "x"),
    ],
)
def test_what_may_not_be_is_exit_code_2(site: Path, words: tuple[str, ...]) -> None:
    """Nothing is written."""
    assert rma(site, *words) == 2
    context = open_site(site)
    assert len(list(context.journal.history(Stream.PART, "1650"))) == 1
    context.journal.close()


@pytest.mark.parametrize("closed", [False, True])
def test_a_mistyped_serial_is_corrected(site: Path, capsys: pytest.CaptureFixture[str], closed: bool) -> None:
    """At any time, and only where there is something to correct; the wrong part's history shows that it never came."""
    assert rma(site, *OPEN) == 0
    assert rma(site, "receive", "1650", "--serial", "1998") == 0
    if closed:
        assert rma(site, "close", "1650", "--reason", "fitted") == 0
    assert rma(site, "receive", "1650", "--serial", "1998") == 2
    assert rma(site, "receive", "1650", "--serial", "1999") == 0
    (one,) = listed(site, capsys, "--all")
    assert (one["replacement"], one["stage"]) == ("1999", "closed" if closed else "received")
    context = open_site(site)
    texts = [[str(event.payload) for event in context.journal.history(Stream.PART, name)] for name in ("1998", "1999")]
    context.journal.close()
    assert texts[0][-1] == "not delivered by RMA case 4711, for 1650: corrected"
    assert texts[1] == ["delivered by RMA case 4711, for 1650"]


def test_a_part_that_is_due_today_is_not_late(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A date is due until its end."""
    words = ("open", "1650", "--case", "1", "--reason", "x", "--due")
    assert rma(site, *words, f"{CLOCK.now() - timedelta(days=1):%Y-%m-%d}") == 2
    assert rma(site, *words, f"{CLOCK.now() + timedelta(days=1):%Y-%m-%d}") == 0
    (one,) = listed(site, capsys)
    assert str(one["due"]).endswith("T23:59:59+00:00")
    now = datetime(2026, 12, 1, 8, tzinfo=UTC)
    assert parse_due("2026-12-01", now, longest=timedelta(days=30)) == datetime(2026, 12, 1, 23, 59, 59, tzinfo=UTC)
    assert parse_due("14d", now, longest=timedelta(days=30)) == now + timedelta(days=14)


def test_one_open_return_at_a_time(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rma(site, *OPEN) == 0
    assert rma(site, *OPEN) == 2
    assert "clusterctl rma close 1650 first" in capsys.readouterr().err


def test_a_preview_changes_nothing(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rma", *OPEN, "--dry-run", "--site", str(site)]) == 0
    assert "Nothing was changed" in capsys.readouterr().out
    assert listed(site, capsys) == []


def test_age_and_lateness() -> None:
    """Late from the due date until the replacement is received."""
    due = NOW + timedelta(days=14)
    opened = {"case": "4711", "reason": "r", "part": "gpu 3", "node": "n2", "due": due.isoformat()}
    events = [
        written(new_event("part", "1650", Kind.RMA_OPENED, opened), 1, NOW),
        written(new_event("part", "1650", Kind.RMA_SHIPPED), 2, NOW + timedelta(days=2)),
    ]
    now = NOW + timedelta(days=17)
    (one,) = rmas(reversed(events))
    assert (one.stage, one.late(due), one.late(now)) == (RmaStage.SHIPPED, False, True)
    text = "gpu 3 of n2, serial 1650: case 4711, shipped 15 d ago, opened 17 d ago, due 2026-01-15, 3 d late"
    assert rma_line(one, now) == text
    received = written(new_event("part", "1650", Kind.RMA_RECEIVED, {"new": "1999"}), 3, now)
    (one,) = rmas([*events, received])
    assert not one.late(CLOCK.now())
