"""A BMC does not give one of its resources: what discover makes of the machine then, case by case (lost.yml)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Inventory
from clusterctl.formats.redfish.tree import ROOT
from tests.redfish_trees.attacks import Machine, Outcome
from tests.redfish_trees.test_redfish_trees import KINDS

CASES = yaml.safe_load((Path(__file__).parent / "lost.yml").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_lost(case: dict[str, Any]) -> None:
    """All else of the inventory stays, only what the lost resource may hide is doubted, and it is listed once."""
    machine = untouched(case["tree"], json.dumps(case.get("change")))
    after = machine.discover({**machine.wire, **{f"{ROOT}/{path}": (one, b"{}") for path, one in case["lost"].items()}})
    if not case.get("machine", True):
        (finding,) = after.findings
        assert (finding.check, after.inventory) == ("bmc", None)
        assert finding.where in [f"{ROOT}/{path}" for path in case["lost"]]
        return
    assert after.inventory is not None
    assert machine.before.inventory is not None
    assert parts(after.inventory) == parts(machine.before.inventory) | case.get("parts", {})
    assert after.inventory.is_machine(machine.before.inventory.serial)
    assert worse(machine.before, after) == dict.fromkeys(case.get("doubted", ()), Verdict.INCONCLUSIVE)
    assert listed(after) - listed(machine.before) == case.get("listed", len(case["lost"]))


@cache
def untouched(tree: str, change: str) -> Machine:
    """Return the machine with the whole tree; it is read once for all cases on it."""
    return Machine(tree, json.loads(change))


def parts(inventory: Inventory) -> dict[str, Any]:
    """How many parts there are of each kind; None for what is unmeasured."""
    return {kind: None if (found := getattr(inventory, kind)) is None else len(found) for kind in KINDS}


def worse(before: Outcome, after: Outcome) -> dict[str, Verdict]:
    """The checks with another verdict than with the whole tree, but for what lists the lost resources."""
    was = {one.key: one.verdict for one in before.findings}
    new = [one for one in after.findings if one.verdict is not was.get(one.key, Verdict.PASS)]
    return {one.check: one.verdict for one in new if one.check not in ("bmc_unread", "event_log")}


def listed(outcome: Outcome) -> int:
    """How many resources the BMC does not give."""
    (count,) = [int(one.measured.value) for one in outcome.findings if one.check == "bmc_unread"] or [0]  # type: ignore[union-attr]
    return count
