"""`scripts/test.sh`: one run of the tests on a machine, since labs have fixed names and addresses; no test is left out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

LOCK = Path("/run/lock/clusterctl-tests.lock")


@pytest.mark.skipif(os.geteuid() != 0, reason="the lock belongs to root")
def test_a_second_run_is_refused_and_named() -> None:
    """With exit code 3, before any test runs. These tests may be the first run themselves: then they hold the lock."""
    with LOCK.open("a+") as lock:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.truncate(0)
            lock.write(f"in /srv/other, process {os.getpid()}\n")
            lock.flush()
        holder = LOCK.read_text().strip()
        argv = ["bash", str(ROOT / "scripts" / "test.sh"), "--collect-only", "tests/fleet/test_gate.py"]
        second = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert holder
    assert (second.returncode, second.stdout) == (3, "")
    assert f"another run of the tests is going on: {holder}." in second.stderr


def test_a_test_with_a_lab_that_the_script_would_not_see_is_refused(tmp_path: Path) -> None:
    """The script finds the files of tests with labs by the text of the mark."""
    (tmp_path / "test_hidden.py").write_text(
        "import pytest\n\npytestmark = getattr(pytest.mark, 'l' 'ab')\n\ndef test_it(): pass\n"
    )
    argv = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tests.conftest", str(tmp_path)]
    asked = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert asked.returncode == pytest.ExitCode.USAGE_ERROR, asked.stdout
    assert f"name pytest.mark.lab in {tmp_path / 'test_hidden.py'}" in asked.stderr
