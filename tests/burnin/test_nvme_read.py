"""nvme_read: drives that read too slowly or fail a read are named by serial; nothing is ever written."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Verdict
from clusterctl.formats.host.nvme import parse_nvme_read
from clusterctl_burnin.fleet_metrics import samples
from clusterctl_burnin.node.processes import LATE
from clusterctl_burnin.node.programs import nvme_read
from clusterctl_burnin.registry import NODE_LOADS
from tests.burnin.kit import LIMITS, SKU
from tests.burnin.solo_kit import Document, drives, findings, fio, readings

FAST = 300_000.0


def fast(document: Document, iops: float = FAST) -> Document:
    """The recorded machine's file is slower than the limit of a drive: its figure is raised."""
    for drive in document["drives"]:
        drive["fio"]["jobs"][0]["read"]["iops"] = iops
    return document


def test_a_recorded_run_is_understood() -> None:
    """Fio 3.33 reading a file of Debian 12: rate, latency and time are those that it printed."""
    (drive,) = parse_nvme_read(json.dumps(drives(nvme0n1=fio("fio_read"))))
    assert (drive.name, drive.serial, drive.error) == ("nvme0n1", "S-nvme0n1", 0)
    assert drive.iops == pytest.approx(4253.346554)
    assert drive.seconds == pytest.approx(2.017)
    assert drive.p99_ms is not None


def test_drives_that_are_fast_enough_pass() -> None:
    """One finding for the node, with the slowest drive's figure."""
    (found,) = findings("nvme_read", fast(drives(nvme0n1=fio("fio_read"), nvme1n1=fio("fio_read"))))
    assert found.verdict is Verdict.PASS
    assert str(found.measured) == "300000 IOPS"


def test_a_slow_drive_fails_and_may_be_run_again() -> None:
    """It is named by serial; another run may find it well, so the gate is to ask for one."""
    document = fast(drives(nvme0n1=fio("fio_read"), nvme1n1=fio("fio_read")))
    document["drives"][1]["fio"]["jobs"][0]["read"]["iops"] = LIMITS["nvme_read_iops_min"].value - 1
    (found,) = findings("nvme_read", document)
    assert (found.verdict, found.serial, found.deterministic) == (Verdict.FAIL, "S-nvme1n1", False)
    assert found.subject == "nvme1n1 (M)"
    assert "S-nvme1n1" in found.remedy


def test_a_read_that_fails_is_the_drives_fault() -> None:
    """Fio's own exit code and errno of a failed read, recorded; what it printed before its JSON does not hide that."""
    (found,) = findings("nvme_read", drives(nvme0n1=fio("fio_io_error")))
    assert found.verdict is Verdict.FAIL
    assert "Input/output error" in found.cause


@pytest.mark.parametrize(
    "message", [fio("fio_no_device"), LATE, (0, "no JSON", ""), (0, '{"jobs"', ""), (1, "", "fio: bad option")]
)
def test_a_drive_that_was_not_read_is_not_well(message: nvme_read.Result) -> None:
    """Whatever fio prints instead of figures: the drive is unmeasured, and another one passed."""
    document = fast(drives(nvme0n1=fio("fio_read")))
    document["drives"] += drives(nvme1n1=message)["drives"]
    (found,) = findings("nvme_read", document)
    assert (found.verdict, found.serial) == (Verdict.INCONCLUSIVE, "S-nvme1n1")


def test_without_fio_the_remedy_names_the_package() -> None:
    """Once for the node, not once a drive."""
    missing = (127, "", "fio: No such file or directory")
    (found,) = findings("nvme_read", drives(nvme0n1=missing, nvme1n1=missing))
    assert (found.verdict, found.subject) == (Verdict.INCONCLUSIVE, "node")
    assert "burnin_tools" in found.remedy


def test_fewer_drives_than_the_sku_has_are_not_enough() -> None:
    """The drives that are there may be fast: the others were not measured. A SKU without any needs none."""
    sku = dataclasses.replace(SKU, data_drive_count=2)
    assert [f.verdict for f in findings("nvme_read", fast(drives(nvme0n1=fio("fio_read"))), sku=sku)] == [
        Verdict.INCONCLUSIVE
    ]
    assert [f.verdict for f in findings("nvme_read", drives())] == [Verdict.NOT_APPLICABLE]


@pytest.mark.parametrize("direction", ["write", "trim"])
def test_a_run_that_wrote_is_refused(direction: str) -> None:
    """Figures of a run that was not the one asked for are no figures."""
    document = drives(nvme0n1=fio("fio_read"))
    document["drives"][0]["fio"]["jobs"][0][direction]["total_ios"] = 1
    with pytest.raises(ParseError, match="wrote or trimmed"):
        parse_nvme_read(json.dumps(document))


def test_each_drive_is_compared_with_the_fleets() -> None:
    """A figure a drive, with its serial; who was not read gives none."""
    document = drives(nvme0n1=fio("fio_read"), nvme1n1=LATE)
    (sample,) = samples("id-1", "h100", readings("nvme_read", document))
    assert (sample.metric.name, sample.serial) == ("nvme_read_iops", "S-nvme0n1")


def test_the_command_only_reads() -> None:
    """Fio itself is ordered to refuse anything else, whatever numbers the caller gives."""
    argv = nvme_read.command("/dev/nvme0n1", 30, 5, 16, 16)
    assert argv[:2] == ["fio", "--readonly"]
    assert [word for word in argv if word.startswith("--rw")] == ["--rw=randread"]
    assert not any("write" in word or "trim" in word for word in argv)


@pytest.mark.parametrize(
    "words", [[], ["30", "5", "16"], ["30", "5", "16", "--rw=write"], ["30", "5", "16", "16", "x"]]
)
def test_the_program_takes_four_numbers_and_nothing_else(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """No word of a caller reaches fio; nothing is asked of the host."""

    def never(*argv: str) -> nvme_read.Result:
        raise AssertionError(argv)

    assert nvme_read.main(words, never, lambda _ask, _names: {}) == 2
    assert "four numbers" in capsys.readouterr().err


LISTED = {
    "blockdevices": [
        {"name": "sda", "type": "disk", "model": "BOSS", "serial": "B", "mountpoint": None},
        {
            "name": "nvme0n1",
            "type": "disk",
            "model": "M",
            "serial": "S0",
            "mountpoint": None,
            "children": [{"name": "nvme0n1p2", "type": "part", "model": None, "serial": None, "mountpoint": "/"}],
        },
        {"name": "nvme1n1", "type": "disk", "model": "M ", "serial": "S1 ", "mountpoint": None},
        {"name": "nvme1n2", "type": "disk", "model": "M", "serial": "S1", "mountpoint": None},
        {"name": "nvme2n1", "type": "disk", "model": None, "serial": "S2", "mountpoint": "/scratch"},
    ]
}


def test_the_drive_of_the_running_system_is_left_out() -> None:
    """Data drives are read though they are mounted; of a drive with several namespaces the first one is."""
    found, system = nvme_read.drives(json.dumps(LISTED))
    assert found == {"nvme1n1": {"serial": "S1", "model": "M"}, "nvme2n1": {"serial": "S2", "model": ""}}
    assert system == ["nvme0n1"]


def test_a_drive_is_named_by_its_identity(tmp_path: Path) -> None:
    """By a link that is no partition's and has no colon, which fio would split at; without one by its kernel name."""
    (tmp_path / "nvme-M_S1").symlink_to("/dev/nvme1n1")
    (tmp_path / "nvme-A:B").symlink_to("/dev/nvme1n1")
    (tmp_path / "nvme-M_S1-part1").symlink_to("/dev/nvme1n1p1")
    assert nvme_read.path_of("nvme1n1", tmp_path) == f"{tmp_path}/nvme-M_S1"
    assert nvme_read.path_of("nvme2n1", tmp_path) == "/dev/nvme2n1"


def test_it_has_time_for_ramp_and_reading() -> None:
    """The suite's seconds go before the limits file's, and the time-out grows with them."""
    (short,), (long,) = (NODE_LOADS["nvme_read"].probes(LIMITS, seconds) for seconds in (None, 600))
    assert short.argv == ("nvme-read", "30", "5", "16", "16")
    assert long.argv == ("nvme-read", "600", "5", "16", "16")
    assert (short.timeout, long.timeout) == (65.0, 635.0)
