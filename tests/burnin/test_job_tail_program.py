"""The nodes' program that reads what a job adds: its log, the event file that was written last, its heartbeat."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusterctl.formats.job_tail import Tail, parse_tail
from clusterctl.formats.tensorboard import read_events
from tests.formats.test_tensorboard import CONTENT
from tests.paths import ROOT

PROGRAM = ROOT / "burnin/clusterctl_burnin/node/job_tail.py"


def tail(folder: Path, events: Path | str, **wish: Any) -> Tail:
    request = {
        "uid": os.getuid(), "gid": os.getgid(), "path": str(folder / "job.out"), "offset": 0, "most": 1 << 20, "heartbeat": "",
        "events": {"path": str(events), "file": "", "offset": 0, "since": 0.0, **wish},
    }  # fmt: skip
    text = f"{PROGRAM.read_text()}\nmain(json.loads({json.dumps(request)!r}))\n"
    done = subprocess.run([sys.executable, "-"], input=text, capture_output=True, text=True, timeout=600, check=True)
    return parse_tail(done.stdout, where="n1")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A log, and the event files of two attempts, the second one newer."""
    (tmp_path / "job.out").write_text("hello\n")
    for number, name in enumerate(("version_0", "version_1")):
        file = tmp_path / "runs" / name / f"events.out.tfevents.{number}.n1.7.0"
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT[: 300 + number])
        os.utime(file, (1000.0 + number, 1000.0 + number))
    return tmp_path


def test_the_event_file_that_was_written_last_is_read(runs: Path) -> None:
    """From the place where the last look ended, as long as it is the same file; the log is read as well."""
    first = tail(runs, runs / "runs")
    assert (first.content, first.error) == (b"hello\n", "")
    assert first.events.file.endswith("version_1/events.out.tfevents.1.n1.7.0")
    assert first.events.content == CONTENT[:301]
    _, used = read_events(first.events.content)
    file = Path(first.events.file)
    file.write_bytes(CONTENT)
    more = tail(runs, runs / "runs", file=first.events.file, offset=used)
    assert (more.events.start, more.events.content) == (used, CONTENT[used:])
    assert tail(runs, runs / "runs", file=first.events.file, offset=len(CONTENT)).events.content == b""
    assert tail(runs, file).events.content == CONTENT


def test_another_file_is_read_from_its_beginning(runs: Path) -> None:
    again = tail(runs, runs / "runs", file="/elsewhere/events.out.tfevents.0", offset=40)
    assert (again.events.start, again.events.content) == (0, CONTENT[:301])


def test_files_of_an_earlier_attempt_are_left_out(runs: Path) -> None:
    """What was not written since the job began is not its progress."""
    assert tail(runs, runs / "runs", since=2000.0).events.content == b""


def test_a_folder_that_is_not_there_yet_is_an_error_of_the_events(runs: Path) -> None:
    """It keeps nothing else from being read."""
    found = tail(runs, runs / "none")
    assert (found.events.error, found.content) == ("No such file or directory", b"hello\n")


def test_without_a_path_nothing_is_looked_for(runs: Path) -> None:
    assert tail(runs, "").events.error == ""
