"""`examples/operations.py`, the second front end, on a rehearsal's site."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lab.tests.lab_kit import needs_lab, running_lab
from tests.e2e.site_kit import RUN_S
from tests.paths import ROOT

pytestmark = [pytest.mark.lab, needs_lab, pytest.mark.timeout(900)]


def test_the_example_takes_nodes_to_gold(tmp_path: Path) -> None:
    """Plan, bootstrap and why, without the command line: the preview names each node, the healthy one arrives, and the
    one with a fault is explained with its remedy.
    """
    with running_lab("e2eex", "10.182.0.0/16", tmp_path, "--hosts", "3") as lab:
        lab("inject", "failed-dimm", "node003")
        command = [sys.executable, "examples/operations.py", str(lab.site)]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=RUN_S, check=False)
        assert ran.returncode == 1, ran.stderr
        assert "node001: discover → install → configure → cable → burnin → admit" in ran.stdout
        assert "node001 is gold: nothing keeps it back" in ran.stdout
        assert "node003 is quarantined" in ran.stdout
        assert "dimms" in ran.stdout
        assert "→ " in ran.stdout.partition("node003 is quarantined")[2]
