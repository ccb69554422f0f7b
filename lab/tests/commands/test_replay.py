"""`clusterctl lab replay`, as an operator runs it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from lab.tests.emulators.redfish.replay_kit import SYSTEM, small, write
from lab.tests.lab_kit import ROOT, clusterctl
from tests.ports import reserve_port

ADDRESS = "127.97.0.1"


def test_serves_until_interrupted(tmp_path: Path) -> None:
    """It prints where the BMCs are and leaves what a site needs to reach them; Ctrl-C ends it and removes that again."""
    tree, out, port = write(small(), tmp_path / "tree"), tmp_path / "out", reserve_port(ADDRESS, "127.97.0.2")
    password = tmp_path / "password"
    password.write_text("of-no-use-elsewhere\n")
    command = (
        *("env", "--default-signal=INT"),  # the background of a shell ignores it
        *(sys.executable, "-m", "clusterctl_cli.main", "lab", "replay", str(tree), "--listen", f"{ADDRESS}:{port}"),
        *("--out", str(out), "--copies", "2", "--password-file", str(password)),
    )
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        output = []
        for line in process.stderr:
            output.append(line)
            if "Ctrl-C ends it" in line:
                break
        try:
            url = f"https://127.97.0.2:{port}{SYSTEM}"
            answer = requests.get(
                url, auth=("root", "of-no-use-elsewhere"), verify=str(out / "lab-ca.pem"), timeout=600
            )
            assert answer.json()["PowerState"] == "On"
            assert answer.json()["SerialNumber"] in (out / "bmcs.csv").read_text()
            assert (out / "bmc-password").stat().st_mode & 0o777 == 0o600
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(600)
    assert process.returncode == 0
    assert not out.exists()
    assert "2 BMCs at 127.97.0.1 to 127.97.0.2" in "".join(output)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "somewhere"], "--listen"),
        (["--latency", "3-1"], "runs backwards"),
        (["--latency", "slow"], "is no range"),
        (["--out", "."], "is there already"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, arguments: list[str], words: str) -> None:
    """A usage error that names the option, and nothing is left behind."""
    result = clusterctl("lab", "replay", str(write(small(), tmp_path / "tree")), *arguments)
    assert result.returncode == 2
    assert words in result.stderr


def test_a_broken_recording_is_named(tmp_path: Path) -> None:
    """The file that is wrong stands in the error."""
    tree = write(small() | {SYSTEM: "{"}, tmp_path / "tree")
    result = clusterctl("lab", "replay", str(tree), "--out", str(tmp_path / "out"))
    assert result.returncode == 2
    assert "Systems/S1/index.json" in result.stderr
    assert not (tmp_path / "out").exists()
