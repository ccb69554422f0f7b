"""The dead man's switch: a night that did not come to its end raises an alarm, by file, metric and doctor."""

from __future__ import annotations

import stat
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from clusterctl.edges.site.night_record import read_record, write_record
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.nightly.record import NightRecord, diagnose
from tests.fleet.people import NOW

DONE = NightRecord(NOW, NOW + timedelta(hours=2), tested=24, failed=1)
ALARM = timedelta(hours=26)


@pytest.mark.parametrize(
    ("record", "hours", "health", "expected"),
    [
        (None, 0, Health.WARN, "no nightly burn-in has ever begun"),
        (NightRecord(NOW), 5, Health.WARN, "none came to its end yet; the last began 5 h ago"),
        (DONE, 12, Health.OK, "came to its end 10 h ago: 24 tested, 1 failed"),
        (DONE, 28, Health.OK, "came to its end 26 h ago"),
        (DONE, 29, Health.WARN, "27 h ago, above the limit of 26 h"),
        (replace(DONE, began=NOW + timedelta(hours=24)), 30, Health.WARN, "28 h ago"),
        (replace(DONE, overdue=3), 12, Health.WARN, "of 3 gold nodes the evidence is too old"),
    ],
)
def test_a_missing_night_is_reported(record: NightRecord | None, hours: int, health: Health, expected: str) -> None:
    """What counts is the last end: one that begins each night and never ends is no night."""
    found = diagnose(record, ALARM, NOW + timedelta(hours=hours))
    assert found.health is health
    assert expected in found.found
    assert bool(found.remedy) is (health is not Health.OK)


def test_the_record_is_kept_and_the_metrics_can_be_collected(tmp_path: Path) -> None:
    """The metrics have the time of the last end: 0 for never."""
    file = tmp_path / "clusterctl.prom"
    assert read_record(tmp_path) is None
    write_record(tmp_path, NightRecord(NOW), file)
    assert "clusterctl_nightly_last_end_timestamp_seconds 0\n" in file.read_text()
    write_record(tmp_path, DONE, file)
    assert read_record(tmp_path) == DONE
    assert f"clusterctl_nightly_last_end_timestamp_seconds {int(NOW.timestamp()) + 7200}\n" in file.read_text()
    assert "clusterctl_nightly_failed_nodes 1\n" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_record_that_is_not_ours_is_no_night(tmp_path: Path) -> None:
    """It is an error, not health."""
    (tmp_path / "nightly.json").write_text("{}")
    with pytest.raises(EnvironmentBrokenError, match="no record of nights"):
        read_record(tmp_path)
