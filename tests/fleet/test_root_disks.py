"""Which drive gets the OS, from the SKU's rule to the proof after the first boot: exactly one, or none is written."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.hardware.disk_contract import DiskContract, KernelDrive, judge_data, judge_root
from clusterctl.fleet.hardware.drives import root_disk
from clusterctl.fleet.hardware.matching import match
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.node import Drive, Inventory, Serial, Unread
from tests.fleet.test_match import SKU, WHOLE

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "data" / "root_disks.yml").read_text())
GB = 10**9


def rule_of(case: dict[str, Any]) -> RootDisk:
    """The rule of a case, whose fields are those of the SKU file."""
    reported = dict(case["rule"])
    sizes = {f"{name}_bytes": reported.pop(f"{name}_gb") * GB for name in ("min", "max") if f"{name}_gb" in reported}
    assert set(reported) <= {field.name for field in fields(RootDisk)}
    return RootDisk(**reported, **sizes)


def inventory_of(case: dict[str, Any]) -> Inventory:
    """What the BMC of a case reports."""
    if case["bmc"] is None:
        return replace(WHOLE, drives=None)
    drives = (
        Drive(slot, model, int(size * GB), Serial(serial), protocol, True, controller=controller)
        for slot, model, size, serial, protocol, controller in case["bmc"]
    )
    return replace(WHOLE, drives=tuple(drives))


def host_of(case: dict[str, Any]) -> list[KernelDrive]:
    """What the machine's own kernel sees."""
    return [
        KernelDrive(path, serial, wwn, model, int(size * GB), f"print of {path}")
        for path, model, size, serial, wwn in case["host"]
    ]


def contract_of(case: dict[str, Any]) -> DiskContract | None:
    """What the installer gets of a discover; None where the node is held."""
    rule = rule_of(case)
    if rule.chosen_by != "bmc":
        return DiskContract("", "", rule)
    try:
        drive = root_disk(inventory_of(case), rule, case.get("known", ""))
    except ClusterctlError:
        return None
    return DiskContract(drive.serial or "", drive.wwn)


def found(case: dict[str, Any], check: str) -> Finding:
    """The finding of one check of a discover."""
    sku = replace(SKU, root_disk=rule_of(case), data_drive_count=case.get("data", 0))
    return next(one for one in match(inventory_of(case), sku) if one.check == check)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_discover(case: dict[str, Any]) -> None:
    """The verdict of the rule; the finding that holds the node lists the candidates and the rule to write."""
    finding = found(case, "root_disk")
    assert finding.verdict.value == case["at_discover"]
    if finding.verdict is Verdict.INCONCLUSIVE:
        assert all(word in f"{finding.cause} {finding.remedy}" for word in case["text"])
    if "data" in case:
        assert found(case, "drive_count").verdict is Verdict.PASS


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_may_be_written(case: dict[str, Any]) -> None:
    """The one drive, whatever the order in which the kernel lists them; else none, and the error has the rule."""
    contract = contract_of(case)
    drives = host_of(case)
    if case["written"] != "refused":
        assert contract is not None
        chosen = contract.choose(drives)
        assert case["written"] in (chosen.serial, chosen.wwn)
        assert contract.choose(drives[::-1]) == chosen
    elif contract is not None:
        with pytest.raises(EdgeError) as refused:
            contract.choose(drives)
        assert all(word in refused.value.remedy for word in case.get("text", ()))
        assert all(drive.path in refused.value.message for drive in drives)


WRITTEN = [case for case in CASES if case["written"] != "refused"]


@pytest.mark.parametrize("case", WRITTEN, ids=[case["name"] for case in WRITTEN])
def test_the_proof_after_the_first_boot(case: dict[str, Any]) -> None:
    """Root on the drive that was written passes; on any other it fails; each other drive is proven to be left alone."""
    contract = contract_of(case)
    assert contract is not None
    drives = host_of(case)
    chosen = contract.choose(drives)
    named = contract.named(chosen)
    verdicts = {drive.path: judge_root(named, "/dev/x", [drive], "node001").verdict for drive in drives}
    assert {path for path, verdict in verdicts.items() if verdict is Verdict.PASS} == {chosen.path}
    for other in (drive for drive in drives if drive is not chosen):
        now = [replace(drive, fingerprint="changed") if drive is other else drive for drive in drives]
        changed = [one.subject for one in judge_data(named, drives, now, "node001") if one.verdict is Verdict.FAIL]
        assert changed == [other.serial or other.wwn]


def test_a_drive_that_could_not_be_read_could_be_the_root_disk_too() -> None:
    """One that fits among those that were read is not the only one; a rule that names the serial is not in doubt."""
    lost = Unread("drives", "/redfish/v1/Chassis/1/Drives/9", "HTTP 500")
    machine = replace(WHOLE, unread=(lost,))
    finding = next(one for one in match(machine, SKU) if one.check == "root_disk")
    assert finding.verdict is Verdict.INCONCLUSIVE
    with pytest.raises(EdgeError):
        root_disk(machine, SKU.root_disk)
    assert root_disk(machine, RootDisk(serial="ROOT1")).serial == "ROOT1"


def test_drives_of_which_some_could_not_be_read_are_not_counted() -> None:
    """Too few may be all there are."""
    lost = Unread("drives", "/redfish/v1/Chassis/1/Drives/9", "HTTP 500")
    machine = replace(WHOLE, drives=(WHOLE.drives or ())[:4], unread=(lost,))
    finding = next(one for one in match(machine, SKU) if one.check == "drive_count")
    assert finding.verdict is Verdict.INCONCLUSIVE
