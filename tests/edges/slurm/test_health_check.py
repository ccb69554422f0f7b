"""The health check of the role node_check as the HealthCheckProgram of a real slurmd."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.edges.ansible.test_node_check_health import GOLDEN, REPORT
from tests.edges.slurm.cluster import PATIENCE_S, missing, running_slurm

SETTINGS = "HealthCheckProgram={folder}/health\nHealthCheckInterval=1\nHealthCheckNodeState=ANY\n"
PROGRAM = """\
import os, pathlib, sys
folder = pathlib.Path({folder!r})
name = os.environ["SLURMD_NODENAME"]
(folder / f"ran-{{name}}").write_text(os.environ["PATH"])
sys.stdout.write({report!r})
sys.exit(1 if name == "h1" else 4)
"""
"""Stands in for clusterctl-node: it fails on h1, and measures nothing on h2."""


def install(folder: Path) -> None:
    """Write the health check as the role does, with the tools of this test in place of the node's."""
    client = shutil.which("scontrol")
    assert client is not None
    (folder / "program.py").write_text(PROGRAM.format(folder=str(folder), report=REPORT))
    (folder / "scontrol").write_text(f'#!/bin/sh\nSLURM_CONF=$(cat {folder}/conf) exec {client} "$@"\n')
    text = GOLDEN.read_text().replace(
        "/usr/bin/python3 /usr/local/sbin/clusterctl-node", f"{sys.executable} {folder}/program.py"
    )
    text = text.replace("/usr/bin/scontrol", f"{folder}/scontrol").replace(
        "/run/clusterctl-node.txt", f"{folder}/$SLURMD_NODENAME.txt"
    )
    (folder / "health").write_text(text)
    for name in ("scontrol", "health"):
        (folder / name).chmod(0o755)


def test_slurmd_drains_the_node_with_a_failed_check_and_not_another(tmp_path: Path) -> None:
    """By its name in Slurm, which is not the host's name here; slurmd gives the check no PATH, so it sets its own."""
    if lacking := missing():
        pytest.skip(f"{', '.join(lacking)} is not installed: run make setup")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root")
    install(tmp_path)
    with running_slurm(("h1", "h2"), SETTINGS.format(folder=tmp_path)) as slurm:
        (tmp_path / "conf").write_text(slurm.environment["SLURM_CONF"])
        slurm.wait_for({"h1": "drained"})
        until = time.monotonic() + PATIENCE_S
        while not (tmp_path / "ran-h2").exists() and time.monotonic() < until:
            time.sleep(0.2)
        assert slurm.reasons()["h1"].startswith("clusterctl: fail gpu_count, gpus: 7 of 8 GPUs; $(reboot) `reboot`")
        assert "/usr/sbin" in (tmp_path / "ran-h2").read_text()
        assert slurm.states()["h2"] == "idle"
