"""The verdict on a rehearsal: only the right outcome counts as success."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.paths import ROOT

SCRIPT = ROOT / "scripts" / "rehearse_verdict.py"
BROKEN = ("node001", "node002")


def node(name: str, **changes: Any) -> dict[str, Any]:
    """A node as it should be after the rehearsal."""
    if name in BROKEN:
        fine = {"name": name, "stage": "quarantined", "cause": "a GPU is missing", "remedy": "Reseat it."}
    else:
        fine = {"name": name, "stage": "gold", "cause": None, "remedy": None}
    return fine | changes


def judge(nodes: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, str(SCRIPT), "--machines", "4", "--broken", *BROKEN]
    return subprocess.run(argv, input=json.dumps({"nodes": nodes}), capture_output=True, text=True, check=False)


def fleet(**changes: dict[str, Any]) -> list[dict[str, Any]]:
    return [node(name, **changes.get(name, {})) for name in ("node001", "node002", "node003", "node004")]


def test_the_right_outcome_passes() -> None:
    """The broken ones in quarantine with cause and remedy, all others gold: success, in words."""
    answer = judge(fleet())
    assert (answer.returncode, answer.stdout) == (0, "as it should be: 2 gold, 2 in quarantine\n")


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        (fleet(node001={"stage": "gold"}), "node001: is gold"),
        (fleet(node003={"stage": "quarantined", "cause": "cable"}), "node003: is quarantined (cable)"),
        (fleet(node004={"stage": "configured"}), "node004: is configured"),
        (fleet(node002={"remedy": ""}), "node002: is in quarantine without"),
        (fleet(node002={"cause": None}), "node002: is in quarantine without"),
        (fleet()[:3], "3 nodes are known, 4 were rehearsed with"),
        (fleet()[1:], "node001: was broken on purpose and is not even known"),
        ([], "0 nodes are known"),
    ],
)
def test_any_other_outcome_fails(nodes: list[dict[str, Any]], complaint: str) -> None:
    """A node in the wrong place, a missing node, a quarantine without words: exit code 1 and the reason."""
    answer = judge(nodes)
    assert answer.returncode == 1
    assert complaint in answer.stdout


def test_no_answer_is_no_success() -> None:
    """An empty or broken listing is never a pass."""
    argv = [sys.executable, str(SCRIPT), "--machines", "4", "--broken", *BROKEN]
    assert subprocess.run(argv, input="", capture_output=True, text=True, check=False).returncode != 0
