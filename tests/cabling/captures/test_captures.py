"""Captures as operators have them: the cases are data, in `cases/`; `cases/README.md` describes how to add one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.errors import UsageError
from clusterctl.operations.cabling import VerifyRequest, run_verify
from clusterctl.operations.fabric_files import PlanFiles

CASES = sorted((Path(__file__).parent / "cases").glob("*/case.yml"))


def verify(folder: Path, case: dict[str, Any]):
    plan = PlanFiles(tuple(folder / file for file in case.get("plan", ())))
    return run_verify(VerifyRequest(fabric=folder / case["fabric"], plan=plan))


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.parent.name)
def test_captures(file):
    """A capture gives the findings of its case and no other, each about what is wrong; or it is refused."""
    case = yaml.safe_load(file.read_text(encoding="utf-8"))
    if "error" in case:
        with pytest.raises(UsageError, match=case["error"]):
            verify(file.parent, case)
        return
    found = verify(file.parent, case)
    assert sorted(one.kind.value for one in found.explanations) == sorted(one["kind"] for one in case["findings"])
    for wanted in case["findings"]:
        causes = [one for one in found.explanations if one.kind.value == wanted["kind"]]
        assert any(
            all(text in one.cause for text in wanted["about"]) and wanted.get("action", "") in one.action
            for one in causes
        ), (wanted, causes)
    numbers = {"right": found.right, "planned": found.planned, "observed": found.observed, "moves": found.moves}
    numbers |= {"devices": found.chassis, "warnings": len(found.warnings)}
    assert {name: number for name, number in numbers.items() if name in case} == {
        name: case[name] for name in numbers if name in case
    }


def test_cases_have_sources():
    """Each case names the source of its form."""
    assert all(yaml.safe_load(file.read_text(encoding="utf-8"))["source"] for file in CASES)
