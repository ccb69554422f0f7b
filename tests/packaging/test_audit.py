"""What the comparison with the advisory database ends with: a package that was not compared is never called clean."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.paths import ROOT

CLEAN = {"name": "click", "version": "8.5.1", "vulns": []}
WEAK = {"name": "pyyaml", "version": "5.3", "vulns": [{"id": "PYSEC-2020-96", "fix_versions": ["5.3.1"]}]}
SKIPPED = {"name": "lxml", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "code"),
    [([CLEAN], 0), ([CLEAN, WEAK], 1), ([WEAK, SKIPPED], 1), ([CLEAN, SKIPPED], 3), ([], 3), (None, 3)],
)
def test_the_exit_code(packages: list[Any] | None, code: int) -> None:
    """1 for a known weakness, 3 where something was not compared, or nothing was printed."""
    text = json.dumps({"dependencies": packages}) if packages is not None else ""
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "audit_verdict.py"], input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert ("pyyaml 5.3: PYSEC-2020-96, corrected in 5.3.1" in done.stdout) == (code == 1)
