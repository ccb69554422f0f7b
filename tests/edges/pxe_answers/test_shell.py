"""The shell of the answers as a critic reads it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from clusterctl.edges.pxe.answers import ReleaseSeries, debian, ubuntu
from tests.edges.pxe_answers.jobs import job


@pytest.mark.parametrize("program", [ubuntu.program(job()), debian.program(job(ReleaseSeries.BOOKWORM))])
def test_shellcheck_finds_nothing(program: str, tmp_path: Path) -> None:
    """As POSIX sh; each warning that is left out has a reason."""
    checker = shutil.which("shellcheck")
    if checker is None:
        pytest.skip("no shellcheck here")
    not_meant = "SC2310,SC2311,SC2312"  # functions in conditions: no `set -e` that they could switch off
    path = tmp_path / "install.sh"
    path.write_text(program)
    argv = [
        checker,
        "-s",
        "sh",
        "-o",
        "all",
        "-e",
        f"{not_meant},SC2249,SC2250",
        str(path),
    ]  # no default case, no braces
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert ended.stdout == ""
