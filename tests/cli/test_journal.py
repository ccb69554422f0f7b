"""`clusterctl journal`, as an operator types it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.errors import ConflictError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Evidence, Origin, Report, passed
from clusterctl.fleet.node import NodeId
from clusterctl.operations.context import open_site
from clusterctl_cli.main import run
from tests.cli.site_of_three import HOT, append, quarantined, write
from tests.events import new_event


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return write(tmp_path)


def file_of(site: Path) -> Path:
    return site / "state" / "journal.db"


def alter(site: Path, statement: str) -> None:
    with closing(sqlite3.connect(file_of(site))) as raw, raw:
        raw.execute(statement)


def test_an_intact_journal(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, what it holds, and the ends of its chains; the same as one JSON document."""
    assert run(["journal", "verify", "--site", str(site)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("intact: ")
    assert run(["journal", "verify", "--site", str(site), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["damages"] == []
    assert document["nodes"] == 2
    assert document["heads"]["node"] in text


def test_a_damaged_event_is_named_with_its_remedy(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3 from `verify` and from each command that reads the event; never a traceback."""
    alter(site, "UPDATE event SET data = 'x' WHERE seq = (SELECT max(seq) FROM event)")
    assert run(["journal", "verify", "--site", str(site)]) == 3
    assert "does not match its digest — run clusterctl journal" in capsys.readouterr().out
    assert run(["nodes", "n2", "--site", str(site)]) == 3
    assert "journal restore" in capsys.readouterr().err


def test_backup_and_restore(site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A journal that was lost comes back; without `--yes` and a terminal nothing is replaced."""
    backup = str(tmp_path / "backup.db")
    assert run(["journal", "backup", backup, "--site", str(site)]) == 0
    assert run(["journal", "backup", backup, "--site", str(site)]) == 2
    file_of(site).write_bytes(file_of(site).read_bytes()[:4096] + b"\xff" * 20000)
    assert run(["nodes", "--site", str(site)]) == 3
    assert run(["journal", "restore", backup, "--site", str(site), "--dry-run"]) == 0
    assert run(["nodes", "--site", str(site)]) == 3
    capsys.readouterr()
    assert run(["journal", "restore", backup, "--site", str(site), "--yes"]) == 0
    assert "is kept as" in capsys.readouterr().err
    assert run(["nodes", "--site", str(site)]) == 0
    assert run(["journal", "verify", "--site", str(site)]) == 0


def test_compact_keeps_the_fleet(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged state is computed again from the events."""
    alter(site, "UPDATE node_state SET summary = '{}'")
    assert run(["nodes", "--site", str(site)]) == 3
    assert "journal compact" in capsys.readouterr().err
    assert run(["journal", "compact", "--site", str(site), "--yes"]) == 0
    assert run(["nodes", "--site", str(site)]) == 0


def test_a_site_without_a_journal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is created by looking: exit code 2."""
    site = write(tmp_path)
    for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
        file_of(site).with_name(name).unlink(missing_ok=True)
    for command in (["verify"], ["backup", str(tmp_path / "b.db")], ["compact"]):
        assert run(["journal", *command, "--site", str(site)]) == 2
    assert not file_of(site).exists()
    assert "there is no journal yet" in capsys.readouterr().err


OLD = datetime(2026, 1, 1, tzinfo=UTC)


def with_old_output(site: Path) -> tuple[Evidence, Evidence]:
    """Return the output of a superseded report of n1 that passed, and what n2's quarantine rests on."""
    good, bad = (Evidence("ibstat", name, OLD, Origin.REAL, b"raw") for name in ("n1", "n2"))
    findings = replace(passed("x", "fine"), evidence=(good.digest,))
    report = {"report": report_to_data(Report("cable", "", (findings,), frozenset({Origin.REAL})))}
    empty = {"report": report_to_data(Report("cable", "", (passed("x", "fine"),), frozenset({Origin.REAL})))}
    named = [new_event("node", "id-n1", Kind.REPORT_RECORDED, report, (good.digest,))]
    again = [new_event("node", "id-n1", Kind.REPORT_RECORDED, empty)]
    append(site, [*named, *again, *quarantined("n2", "cable", replace(HOT, evidence=(bad.digest,)))], [good, bad])
    return good, bad


def test_old_output_goes_by_one_setting(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without `evidence.pass_days` nothing that an event names goes; with it, what passed long ago, also during a run."""
    good, bad = with_old_output(site)
    assert run(["journal", "compact", "--site", str(site), "--yes"]) == 0
    assert "removed 0 pieces of evidence" in capsys.readouterr().out
    with (site / "site.yml").open("a") as file:
        file.write("\nevidence: {pass_days: 30}\n")
    context = open_site(site)
    context.journal.claim([NodeId("id-n1")], "r7")
    assert run(["journal", "compact", "--site", str(site), "--dry-run"]) == 0
    assert "raw output of 1 pieces of passing evidence" in " ".join(capsys.readouterr().out.split())
    assert run(["journal", "compact", "--site", str(site), "--yes"]) == 0
    assert context.journal.evidences([good.digest, bad.digest]) == {bad.digest: bad}
    assert run(["nodes", "n1", "--evidence", good.digest, "--site", str(site)]) == 2
    assert "no longer kept" in capsys.readouterr().err
    assert run(["journal", "verify", "--site", str(site)]) == 0


def test_without_the_setting_a_run_stops_a_compaction(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing may be removed then: the run's name is reported."""
    open_site(site).journal.claim([NodeId("id-n1")], "r7")
    assert run(["journal", "compact", "--site", str(site), "--yes"]) == ConflictError.exit_code
    assert "run r7" in capsys.readouterr().err
