"""The burn-in's probes as a job of Slurm: one program for all nodes, one file for each node's answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from clusterctl_burnin.checks.swap_off import CHECK
from clusterctl_burnin.probe import Status, parse_readings
from clusterctl_burnin.sweep import sweep
from tests.edges.slurm.cluster import SlurmCluster


def test_srun_keeps_each_nodes_answer(slurm: SlurmCluster, tmp_path: Path) -> None:
    """As in docs/how-to/burnin-judge.md, but by the node's number: all nodes of this Slurm are one machine by name."""
    program, reported = tmp_path / "ask.py", tmp_path / "reports"
    program.write_bytes(sweep((CHECK,)).stdin)
    reported.mkdir()
    argv = ["srun", "-N3", f"--output={reported}/%n.json", sys.executable, str(program)]
    subprocess.run(argv, env=slurm.environment, timeout=600, check=True)
    answers = {file.stem: parse_readings(file.read_text()) for file in reported.iterdir()}
    assert sorted(answers) == ["0", "1", "2"]
    (probe,) = CHECK.probes
    assert all(answer.probes[probe.name].status is not Status.TIMEOUT for answer in answers.values())
