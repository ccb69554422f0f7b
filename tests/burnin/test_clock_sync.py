"""clock_sync: what chronyd and systemd report of the clock, each answer with its verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl_burnin.node.processes import NOT_FOUND, Result
from clusterctl_burnin.node.programs import clock_sync
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, readings

TABLE: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "clocks.yml").read_text())


def document(case: dict[str, Any]) -> str:
    """The document of `clock-sync` on a host that answers as in the case."""

    def ask(*argv: str, seconds: float) -> Result:
        assert seconds > 0
        key = argv[-1] if argv[0] == "chronyc" else "timedatectl"
        if key in case:
            return 0, case[key], ""
        return (1, case["refused"], "") if argv[0] == "chronyc" and "refused" in case else (NOT_FOUND, "", "not found")

    return json.dumps({name: clock_sync.answer(ask, *argv) for name, argv in clock_sync.QUESTIONS.items()})


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case["source"][:50])
def test_a_clock_has_its_verdict(case: dict[str, Any]) -> None:
    """One finding, with its cause, and what to do unless it passes."""
    (finding,) = CHECKS["clock_sync"].findings(readings(clock_sync=lambda _: document(case)), expected())
    assert finding.verdict.name.lower() == case["verdict"], str(finding)
    assert case["text"] in finding.cause
    assert bool(finding.remedy) == (case["verdict"] != "pass")


def test_the_program_prints_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    """With the code and the output of each question."""
    assert clock_sync.main(lambda *argv, seconds: (1, "", f"{argv[0]} after {seconds}")) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["tracking"] == {"code": 1, "output": "chronyc after 10.0"}
    assert printed.keys() == {"tracking", "sources", "timedatectl"}
