"""drive_smart and the error log of nvme_health: public outputs of drives, each with the verdict that it deserves."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.host.nvme import parse_nvme_health
from clusterctl_burnin.node.processes import NOT_FOUND, Result, ask_all
from clusterctl_burnin.node.programs import drive_smart, nvme_health
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, readings

TABLE: dict[str, list[dict[str, Any]]] = yaml.safe_load((Path(__file__).parent / "data" / "drives.yml").read_text())


def found(*drives: dict[str, Any]) -> tuple[Finding, ...]:
    document = json.dumps({"drives": drives})
    return CHECKS["drive_smart"].findings(readings(drive_smart=lambda _: document), expected())


def drive(smart: dict[str, Any] | None, name: str = "sda", output: str = "") -> dict[str, Any]:
    return {"name": name, "serial": "Z1", "model": "", "code": 0, "output": output, "smart": smart}


@pytest.mark.parametrize("case", TABLE["smart"], ids=lambda case: case["source"][-40:])
def test_a_public_drive_has_its_verdicts(case: dict[str, Any]) -> None:
    """No more and no fewer; each names the drive and what to do."""
    findings = found(drive(case["smart"]))
    bad = {f.code.value: f.verdict.name.lower() for f in findings if f.verdict is not Verdict.PASS}
    assert bad == case["verdicts"], [str(finding) for finding in findings]
    assert all(
        finding.subject.startswith("sda") and finding.remedy for finding in findings if finding.code.value in bad
    )


def test_a_volume_that_does_not_open_is_no_fault_where_its_drives_are_read_behind_the_controller() -> None:
    """The drives are read through the controller, so that the volume itself needs no SMART."""
    refused = {"smartctl": {"exit_status": 2, "messages": [{"string": "try adding '-d megaraid,N'"}]}}
    healthy = TABLE["smart"][1]["smart"]
    (finding,) = found(drive(refused), drive(healthy, "bus/0 megaraid,0"))
    assert (finding.verdict, finding.subject) == (Verdict.WARN, "sda")


def test_a_drive_without_an_answer_is_not_healthy() -> None:
    """A tool that is missing and a drive that hangs are named."""
    assert [f.verdict for f in found(drive(None, output="smartctl is not installed"))] == [Verdict.INCONCLUSIVE]
    assert [f.verdict for f in found()] == [Verdict.NOT_APPLICABLE]


@pytest.mark.parametrize("case", TABLE["nvme_errors"], ids=lambda case: case["source"][:50])
def test_a_public_error_log_names_the_blocks_that_are_lost(case: dict[str, Any]) -> None:
    """By status code, in both forms in which nvme-cli has printed it; a refused command is no lost block."""

    def edit(text: str) -> str:
        document = json.loads(text)
        document["drives"][1]["errors"] = case["errors"]
        return json.dumps(document)

    answers = readings(nvme_health=edit)
    _, second = parse_nvme_health(answers.probes["nvme_health"].stdout)
    assert second.health is not None
    assert list(second.health.lost_blocks or ()) == case["blocks"]
    (finding,) = CHECKS["nvme_health"].findings(answers, expected())
    assert (finding.verdict is Verdict.FAIL) == bool(case["blocks"])
    assert all(str(block) in finding.cause for block in case["blocks"])


LSBLK = {
    "blockdevices": [
        {"name": "sda", "type": "disk", "tran": "sata", "size": 480103981056, "model": "BOSS ", "serial": " 1"},
        {"name": "sdb", "type": "disk", "tran": "usb", "size": 1, "model": "Virtual Floppy", "serial": None},
        {"name": "sdc", "type": "disk", "tran": "sas", "size": 0, "model": "empty reader", "serial": None},
        {"name": "nvme0n1", "type": "disk", "tran": "nvme", "size": 1, "model": "PM9A3", "serial": "A"},
    ]
}
SCAN = {"devices": [{"name": "/dev/sda", "type": "scsi"}, {"name": "/dev/bus/0", "type": "megaraid,2"}]}


class Host:
    """Answers as lsblk and smartctl do; `asked` lists what smartctl was asked for."""

    def __init__(self, disks: dict[str, Any] = LSBLK, *, installed: bool = True) -> None:
        self.disks, self.installed = disks, installed
        self.asked: list[tuple[str, ...]] = []

    def ask(self, *argv: str) -> Result:
        if argv[0] == "lsblk":
            return 0, json.dumps(self.disks), ""
        self.asked.append(argv[2:])
        if not self.installed:
            return NOT_FOUND, "", "smartctl: No such file or directory"
        document = SCAN if argv[2] == "--scan" else {"smartctl": {"exit_status": 64}, "smart_status": {"passed": True}}
        return (0 if argv[2] == "--scan" else 64), json.dumps(document), ""


def test_drives_are_those_of_lsblk_and_those_behind_controllers(capsys: pytest.CaptureFixture[str]) -> None:
    """No USB, no empty reader, no NVMe; an exit code other than 0 is an answer."""
    host = Host()
    assert drive_smart.main(host.ask, partial(ask_all, seconds=60)) == 0
    drives = json.loads(capsys.readouterr().out)["drives"]
    assert [(one["name"], one["serial"], one["code"]) for one in drives] == [
        ("sda", "1", 64),
        ("bus/0 megaraid,2", "", 64),
    ]
    assert all(one["smart"]["smart_status"]["passed"] for one in drives)
    assert set(host.asked) == {
        ("--scan",),
        ("--xall", "/dev/sda"),
        ("--xall", "--device", "megaraid,2", "/dev/bus/0"),
    }


def test_smartctl_is_needed_only_where_there_are_drives_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    """A node with NVMe drives only runs without it; else its absence is the answer of each drive."""
    without = Host({"blockdevices": LSBLK["blockdevices"][3:]}, installed=False)
    assert drive_smart.main(without.ask, partial(ask_all, seconds=60)) == 0
    assert (json.loads(capsys.readouterr().out), without.asked) == ({"drives": []}, [])
    drive_smart.main(Host(installed=False).ask, partial(ask_all, seconds=60))
    (one,) = json.loads(capsys.readouterr().out)["drives"]
    assert (one["smart"], one["output"]) == (None, "smartctl is not installed")


def test_the_error_log_is_read_of_each_drive_that_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the drive keeps none that nvme-cli can read, it is null."""

    def ask(*argv: str) -> Result:
        if argv[0] == "lsblk":
            return (
                0,
                json.dumps({"blockdevices": [{**one, "name": f"nvme{n}n1", "serial": str(n)} for n in (0, 1)]}),
                "",
            )
        if argv[1] == "smart-log":
            return 0, "{}", ""
        return (0, '{"errors": [{"error_count": 1}]}', "") if argv[-1] == "/dev/nvme0n1" else (1, "", "not supported")

    one = LSBLK["blockdevices"][3]
    nvme_health.main(ask, partial(ask_all, seconds=60))
    drives = json.loads(capsys.readouterr().out)["drives"]
    assert [each["errors"] for each in drives] == [[{"error_count": 1}], None]
