"""The health check of the role node_check as the HealthCheckProgram of a real slurmd."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

from lab.tests.lab_kit import eventually
from tests.edges.slurm.cluster import missing, running_slurm
from tests.edges.slurm.node_programs import install, write_node_file

SETTINGS = "HealthCheckProgram={folder}/clusterctl-health\nHealthCheckInterval=1\nHealthCheckNodeState=ANY\n"
NODES = ("h1", "h2")


def test_slurmd_drains_the_node_with_a_failed_check_and_not_another() -> None:
    """By its name in Slurm, which is not the host's name here; slurmd gives the check no PATH, so it sets its own."""
    if lacking := missing():
        pytest.skip(f"{', '.join(lacking)} is not installed: run make setup")
    if os.geteuid() != 0:
        pytest.skip("slurmd needs root")
    with tempfile.TemporaryDirectory(prefix="health") as name:
        folder = Path(name)
        install(folder)
        write_node_file(folder, NODES, bad=("h1",))
        with running_slurm(NODES, SETTINGS.format(folder=folder)) as slurm:
            (folder / "slurm.conf").symlink_to(slurm.environment["SLURM_CONF"])
            slurm.wait_for({"h1": "drained"})
            assert eventually((folder / "h2.txt").exists)
            assert re.fullmatch(r"clusterctl:disk_space:\d{8}T\d{6}Z", slurm.reasons()["h1"].strip())
            assert (folder / "h1.txt").read_text().startswith("h1: fail\n  fail disk_space, /: / is nearly full")
            assert slurm.states()["h2"] == "idle"
