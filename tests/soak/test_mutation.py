"""The mutants of each module that decides about nodes and drives: its tests kill 95 % where that was reached before."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.mutation.targets import TARGETS, Target
from tests.paths import ROOT

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.path)
def test_the_tests_of_a_module_kill_its_mutants(target: Target) -> None:
    """All are run; the survivors stand in the output."""
    argv = [sys.executable, "-m", "tests.mutation", target.path]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ", 0 not run" in ran.stdout.splitlines()[-1]
