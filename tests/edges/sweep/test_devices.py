"""BMCs of DPUs, switches and power shelves are recognised: they are never written down as machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.bmc.observation import BmcObservation, Identity, SweepOutcome
from clusterctl.fleet.bmc.reconciliation import ConflictKind, Planned, join
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.identity import next_path, read_greeting, read_identity
from clusterctl.formats.redfish.tree import Answers

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "devices.yml").read_text())
ROOT = "/redfish/v1"
ADDRESS = "192.0.2.9"


def collection(path: str, names: list[str]) -> dict[str, Any]:
    return {"Members": [{"@odata.id": f"{path}/{name}"} for name in names], "Members@odata.count": len(names)}


def tree_of(case: dict[str, Any]) -> dict[str, Any]:
    """The BMC of a case; where `systems` is null its root does not name them."""
    links = {name: {"@odata.id": f"{ROOT}/{name}"} for name in ("Chassis", "Managers", "Systems")}
    if case["systems"] is None:
        del links["Systems"]
    found: dict[str, Any] = {ROOT: {"RedfishVersion": "1.17.0", **links, **case["root"]}}
    found[f"{ROOT}/Systems"] = collection(f"{ROOT}/Systems", list(case["systems"] or ()))
    found[f"{ROOT}/Chassis"] = collection(f"{ROOT}/Chassis", list(case["chassis"]))
    found[f"{ROOT}/Managers"] = collection(f"{ROOT}/Managers", ["bmc"])
    found[f"{ROOT}/Managers/bmc"] = {"Id": "bmc"}
    for name in case["chassis"]:
        found[f"{ROOT}/Chassis/{name}"] = {"Id": name, **case.get("chassis_types", {}).get(name, {})}
    for name, body in (case["systems"] or {}).items():
        found[f"{ROOT}/Systems/{name}"] = {"Id": name, "Name": name, **body}
    return found


def read(case: dict[str, Any]) -> tuple[Identity, int]:
    """What a sweep knows of it in the end, and with how many reads."""
    tree = tree_of(case)
    answers: Answers = {ROOT: tree[ROOT]}
    reads = 0
    while reads < 12 and (path := next_path(answers, ADDRESS)) is not None:
        reads += 1
        answers = {**answers, path: tree.get(path, {})}
    return read_identity(answers, ADDRESS), reads


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_device_is_what_it_is(case: dict[str, Any]) -> None:
    """Within the reads that a sweep has for one address: login, log-out and root are three of its eight requests."""
    identity, reads = read(case)
    assert identity.kind == case["kind"]
    assert reads <= 5


def test_a_dpu_is_recognised_before_any_login() -> None:
    """Its service root names it: the site's password is not tried there."""
    greetings = {case["name"]: read_greeting(tree_of(case)[ROOT]).kind for case in CASES}
    assert greetings["BlueField-3 DPU by its service root"] == "DPU"
    assert greetings["a server"] == ""


def test_such_a_device_is_in_no_sheet_and_at_no_planned_address() -> None:
    """It is neither sound nor unplanned; a planned address where one answers is reported as that."""
    device = BmcObservation(
        ADDRESS, SweepOutcome.OTHER_DEVICE, identity=Identity(serial=Serial("MT1")), cause="a DPU answers"
    )
    free = join([device], asked=[ADDRESS], planned=[Planned("sheet:2", "node002", "192.0.2.7", "S2")])
    assert (free.accepted, [found.kind for found in free.conflicts]) == ((), [])
    planned = join([device], asked=[ADDRESS], planned=[Planned("sheet:2", "node002", ADDRESS)])
    (conflict,) = planned.conflicts
    assert conflict.kind is ConflictKind.OTHER_MACHINE
    assert "DPU" in conflict.cause
