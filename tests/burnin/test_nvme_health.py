"""nvme_health and the program that it reads: each drive's own words, by serial, and silence is no health."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.formats.host.nvme import WARNINGS, parse_nvme_health
from clusterctl_burnin.node.processes import ask_all
from clusterctl_burnin.node.programs import nvme_health
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import SKU, expected, readings

SECOND = "S64FNE0R500002"


def found(**log: object) -> tuple[Finding, ...]:
    """With the second drive's log changed; with `output` that drive does not answer."""

    def edit(text: str) -> str:
        document = json.loads(text)
        drive = document["drives"][1]
        if "output" in log:
            drive.update(code=1, log=None, output=log["output"])
        else:
            drive["log"].update(log)
        return json.dumps(document)

    return CHECKS["nvme_health"].findings(readings(nvme_health=edit), expected())


@pytest.mark.parametrize(
    ("log", "verdict", "cause", "remedy"),
    [
        ({"critical_warning": 1}, Verdict.FAIL, WARNINGS[0], f"replace the drive with serial {SECOND}"),
        ({"critical_warning": 2}, Verdict.FAIL, WARNINGS[1], "let the drive cool"),
        ({"critical_warning": 12}, Verdict.FAIL, f"{WARNINGS[2]}, {WARNINGS[3]}", "replace the drive"),
        ({"critical_warning": 128}, Verdict.FAIL, "an unknown warning (0x80)", "replace the drive"),
        ({"avail_spare": 9}, Verdict.FAIL, "fewer spare blocks", "replace the drive"),
        ({"percent_used": 81}, Verdict.FAIL, "most of the writing", "replace the drive"),
        ({"media_errors": 2}, Verdict.WARN, "2 times in its life", "replace it if the number grows"),
        ({"output": "it did not answer in time"}, Verdict.INCONCLUSIVE, "it did not answer in time", "reseat it"),
        ({"output": "nvme: No such file or directory"}, Verdict.INCONCLUSIVE, "No such file", "nvme-cli"),
    ],
)
def test_a_bad_drive_is_reported_by_its_serial(
    log: dict[str, object], verdict: Verdict, cause: str, remedy: str
) -> None:
    """One finding, on the drive, with what to do about it."""
    (finding,) = found(**log)
    assert (finding.verdict, finding.serial) == (verdict, SECOND)
    assert finding.subject.startswith("nvme1n1 (SAMSUNG")
    assert cause in finding.cause
    assert remedy in finding.remedy


def test_a_log_without_a_figure_is_not_read_as_zero() -> None:
    """The field is named."""
    (finding,) = found(media_errors=None)
    assert finding.verdict is Verdict.INCONCLUSIVE
    assert "nvme-health nvme1n1 media_errors" in finding.cause


@pytest.mark.parametrize(("wanted", "verdict"), [(0, Verdict.NOT_APPLICABLE), (8, Verdict.INCONCLUSIVE)])
def test_a_node_without_nvme_drives(wanted: int, verdict: Verdict) -> None:
    """Nothing to ask where the SKU has no data drives; else the drives are missing, or the suite is wrong."""
    sku = replace(SKU, data_drive_count=wanted)
    none = readings(nvme_health=lambda _: '{"drives": []}')
    assert [f.verdict for f in CHECKS["nvme_health"].findings(none, expected(sku=sku))] == [verdict]


LSBLK = {
    "blockdevices": [
        {"name": "sda", "type": "disk", "model": "BOSS", "serial": "1"},
        {"name": "nvme0n1", "type": "disk", "model": "PM9A3 ", "serial": " A "},
        {"name": "nvme0n2", "type": "disk", "model": "PM9A3", "serial": "A"},
        {"name": "nvme1n1", "type": "disk", "model": None, "serial": None},
    ]
}


class Host:
    """A host with drives that give these answers."""

    def __init__(self, answers: Mapping[str, str | threading.Event], lsblk: int = 0) -> None:
        self.answers, self.lsblk = answers, lsblk

    def ask(self, *argv: str) -> tuple[int, str, str]:
        if argv[0] == "lsblk":
            return self.lsblk, json.dumps(LSBLK), "lsblk: broken"
        answer = self.answers[argv[-1]]
        if isinstance(answer, threading.Event):
            answer.wait(600)
            return 0, "{}", ""
        return (0, answer, "") if answer else (1, "", "NVMe status: Internal Error\n")


LOG = '{"critical_warning": 0, "avail_spare": 100, "spare_thresh": 10, "percent_used": 7, "media_errors": 0}'


def test_each_drive_is_asked_once_and_a_dead_one_delays_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    """Not once for each namespace; a drive without an answer is reported as such, and the others' answers are whole."""
    dead = threading.Event()
    began = time.monotonic()
    host = Host({"/dev/nvme0n1": LOG, "/dev/nvme1n1": dead})
    assert nvme_health.main(host.ask, partial(ask_all, seconds=2.0)) == 0
    assert time.monotonic() - began < 150
    dead.set()
    first, second = parse_nvme_health(capsys.readouterr().out)
    assert first.health is not None
    assert (first.name, first.serial, first.model, first.health.used) == ("nvme0n1", "A", "PM9A3", 7)
    assert (second.health, second.output) == (None, "it did not answer in time")


@pytest.mark.parametrize(
    ("answer", "output"), [("", "NVMe status: Internal Error"), ("Smart Log for", "no JSON: Smart")]
)
def test_a_drive_that_answers_with_an_error(answer: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Its words are kept."""
    host = Host({"/dev/nvme0n1": LOG, "/dev/nvme1n1": answer})
    nvme_health.main(host.ask, partial(ask_all, seconds=20))
    _, second = parse_nvme_health(capsys.readouterr().out)
    assert second.health is None
    assert second.output.startswith(output)


def test_without_a_list_of_drives_there_is_no_answer(capsys: pytest.CaptureFixture[str]) -> None:
    """Its exit code and words are lsblk's."""
    assert nvme_health.main(Host({}, lsblk=32).ask, partial(ask_all, seconds=1)) == 32
    assert capsys.readouterr() == ("", "lsblk: broken")


def test_the_drive_that_the_system_booted_from_is_no_data_drive() -> None:
    """A missing data drive shows, although the boot drive is one more that answers."""
    listed = {
        "blockdevices": [
            {
                "name": "nvme0n1",
                "type": "disk",
                "model": "M",
                "serial": "A",
                "mountpoint": None,
                "children": [{"name": "vg-root", "type": "lvm", "mountpoint": "/"}],
            },
            {"name": "nvme1n1", "type": "disk", "model": "M", "serial": "B", "mountpoint": "/scratch"},
        ]
    }
    assert {name: drive["boot"] for name, drive in nvme_health.drives(json.dumps(listed)).items()} == {
        "nvme0n1": True,
        "nvme1n1": False,
    }

    def booted(text: str) -> str:
        document = json.loads(text)
        document["drives"][0]["boot"] = True
        return json.dumps(document)

    sku = replace(SKU, data_drive_count=2)
    (finding,) = CHECKS["nvme_health"].findings(readings(nvme_health=booted), expected(sku=sku))
    assert (finding.verdict, finding.cause) == (Verdict.INCONCLUSIVE, "1 of 2 NVMe drives could be measured")
