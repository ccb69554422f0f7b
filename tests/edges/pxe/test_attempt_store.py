"""The attempts: whole at any moment, whichever process is killed, and the same for every process that reads them."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.pxe.attempt import MAX_MILESTONES, AttemptState, with_milestone
from clusterctl.edges.pxe.attempt_store import AttemptStore, new_token
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.node import Mac
from tests.edges.pxe.kit import MAC, NOON, armed

WRITER = """
import sys
from pathlib import Path
from clusterctl.edges.pxe.attempt import with_milestone
from clusterctl.edges.pxe.attempt_store import AttemptStore
from tests.edges.pxe.kit import NOON
attempts = AttemptStore(Path(sys.argv[1]))
print("writing", flush=True)
for number in range(int(sys.argv[2])):
    attempts.change("node001", lambda now: with_milestone(now, f"{sys.argv[3]} {number}", NOON))
"""


@pytest.fixture
def attempts(tmp_path: Path) -> AttemptStore:
    return AttemptStore(tmp_path / "pxe" / "machines")


def writer(tmp_path: Path, number: int, name: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", WRITER, str(tmp_path / "pxe" / "machines"), str(number), name]
    started = subprocess.Popen(
        argv, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "writing\n"
    return started


def test_what_was_laid_down_is_read_again(attempts: AttemptStore, tmp_path: Path) -> None:
    """With all its fields, by another process's eyes; private to its owner."""
    attempt = attempts.put(armed(), {"overlay.tar": b"content"})
    again = AttemptStore(tmp_path / "pxe" / "machines")
    assert again.find("node001") == attempt
    assert again.document(attempt, "overlay.tar") == b"content"
    assert again.document(attempt, "user-data") is None
    for path in (tmp_path / "pxe").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_a_machine_is_found_by_card_and_token(attempts: AttemptStore) -> None:
    one = attempts.put(armed("node001"), {})
    two = attempts.put(armed("node002", macs=(Mac("02:00:00:00:00:02"),), state=AttemptState.DONE), {})
    assert attempts.by_mac(MAC) == one
    assert attempts.by_mac(Mac("02:00:00:00:00:99")) is None
    assert attempts.by_token(two.token) == two
    assert attempts.by_token("") is None
    assert attempts.by_token(new_token()) is None


def test_a_card_of_two_records_is_the_running_ones(attempts: AttemptStore) -> None:
    """A card that was moved: the machine that is being installed is meant."""
    attempts.put(armed("node001", state=AttemptState.DONE), {})
    two = attempts.put(armed("node002"), {})
    assert attempts.by_mac(MAC) == two


def test_a_change_of_an_older_attempt_changes_nothing(attempts: AttemptStore) -> None:
    attempts.put(armed(id="old"), {})
    newer = attempts.put(armed(id="new"), {})
    assert attempts.change("node001", lambda now: replace(now, reason="late"), of="old") is None
    assert attempts.find("node001") == newer


def test_a_new_attempt_removes_the_files_of_the_old_one(attempts: AttemptStore, tmp_path: Path) -> None:
    old = attempts.put(armed(id="old"), {"overlay.tar": b"old"})
    attempts.keep_log(old, b"log")
    assert attempts.log(old) == b"log"
    attempts.put(armed(id="new"), {"overlay.tar": b"new"})
    assert [path.name for path in (tmp_path / "pxe" / "machines" / "node001").iterdir()] == ["new"]


def test_two_processes_lose_no_word(attempts: AttemptStore, tmp_path: Path) -> None:
    """Both report milestones of one machine at the same time: all of them are there."""
    attempts.put(armed(), {})
    for process in [writer(tmp_path, 30, "one"), writer(tmp_path, 30, "two")]:
        assert process.wait(600) == 0
    found = attempts.find("node001")
    assert found is not None
    assert sorted(item.text for item in found.milestones) == sorted(
        f"{name} {number}" for name in ("one", "two") for number in range(30)
    )


def test_killed_at_any_moment_the_record_is_whole(attempts: AttemptStore, tmp_path: Path) -> None:
    """SIGKILL while its disk was written, again and again: what is there is whole, and the next one goes on."""
    attempts.put(armed(), {})
    before = 0
    for turn in range(6):
        process = writer(tmp_path, 100_000, f"turn {turn}")
        while len(json.loads((tmp_path / "pxe" / "machines" / "node001.json").read_text())["milestones"]) < before + 3:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait(600)
        found = AttemptStore(tmp_path / "pxe" / "machines").find("node001")
        assert found is not None
        before = min(len(found.milestones), MAX_MILESTONES - 20)
        attempts.change("node001", lambda now: replace(now, milestones=now.milestones[: MAX_MILESTONES - 20]))


def test_a_talkative_machine_fills_no_disk(attempts: AttemptStore) -> None:
    attempts.put(armed(), {})
    attempt = armed()
    for number in range(MAX_MILESTONES + 50):
        attempt = with_milestone(attempt, f"word {number}", NOON)
    assert len(attempt.milestones) == MAX_MILESTONES
    assert attempt.milestones[-1].text == f"word {MAX_MILESTONES + 49}"


def test_a_record_that_is_none_is_named(attempts: AttemptStore, tmp_path: Path) -> None:
    """A damaged file: reported with its name, not taken for an unknown machine."""
    attempts.put(armed(), {})
    (tmp_path / "pxe" / "machines" / "node001.json").write_text("{}")
    with pytest.raises(EnvironmentBrokenError, match=r"node001\.json: .*no record"):
        attempts.find("node001")
