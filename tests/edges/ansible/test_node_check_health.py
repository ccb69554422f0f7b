"""The health check of the role node_check: it drains the node for a failed check, and for nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "roles/node_check/default/golden/clusterctl-health.j2"
REPORT = "node001: fail\n  fail gpu_count, gpus: 7 of 8 GPUs; $(reboot) `reboot`\n    reseat GPU 3\n"


def run(folder: Path, code: int) -> str:
    """Return what scontrol was called with, where the checks end with this exit code."""
    for name, text in {
        "python3": f"#!/bin/sh\ncat {folder}/report\nexit {code}\n",
        "scontrol": f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/called\n',
    }.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    (folder / "report").write_text(REPORT)
    script = GOLDEN.read_text()
    script = script.replace("/usr/bin/", f"{folder}/").replace("/run/", f"{folder}/")
    (folder / "health").write_text(script)
    subprocess.run(["sh", str(folder / "health")], check=True, timeout=60)
    called = folder / "called"
    return called.read_text() if called.exists() else ""


@pytest.mark.parametrize("code", [0, 2, 4, 127])
def test_nothing_but_a_failure_drains_the_node(tmp_path: Path, code: int) -> None:
    """Fine, a file that does not know the node, unmeasured, or no Python at all: Slurm keeps the node."""
    assert run(tmp_path, code) == ""


def test_a_failure_drains_the_node_with_the_finding(tmp_path: Path) -> None:
    """The reason is the first finding, as text: no shell runs what it holds."""
    called = run(tmp_path, 1).splitlines()
    assert called[0] == "update"
    assert called[2:] == ["state=drain", "reason=clusterctl: fail gpu_count, gpus: 7 of 8 GPUs; $(reboot) `reboot`"]
