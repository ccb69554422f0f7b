"""After an install: the OS runs from the right disk, and the others are as they were; else the disk is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.disk_contract import (
    DiskContract,
    KernelDrive,
    data_to_compare,
    judge_data,
    judge_root,
    not_compared,
    unproven,
    with_fingerprints,
)

ROOT = KernelDrive("/dev/nvme1n1", "S6CTNE0T1", "eui.0025384b11b12d3c", "MZ1L2960", 960_197_124_096, "r" * 64)
DATA = [
    KernelDrive(f"/dev/nvme{n}n1", f"S6CTNE0D{n}", f"eui.00253{n}", "MZWLO7T6", 7_681_501_126_656, f"{n}" * 64)
    for n in (0, 2)
]
BEFORE = (DATA[0], ROOT, DATA[1])
CONTRACT = DiskContract("S6CTNE0T1", "0025384B11B12D3C")
WHERE = "rack A01 U4, n1"


def test_the_root_disk_by_serial_or_wwn() -> None:
    """One disk with an identity, and it is the right one: by either name."""
    for disk in (ROOT, replace(ROOT, serial=""), replace(ROOT, wwn="")):
        finding = judge_root(CONTRACT, "/dev/nvme1n1p2", [disk], WHERE)
        assert finding.verdict is Verdict.PASS, finding
        assert finding.expected == "serial S6CTNE0T1 or WWN 0025384B11B12D3C"


@pytest.mark.parametrize("disks", [[DATA[0]], [ROOT, DATA[0]]])
def test_another_disk_or_one_more_is_a_failure(disks: list[KernelDrive]) -> None:
    """A data disk below the root file system, alone or in a RAID with the right one: named, with what to do."""
    finding = judge_root(CONTRACT, "/dev/md0", disks, WHERE)
    assert (finding.verdict, finding.deterministic) == (Verdict.FAIL, True)
    assert "S6CTNE0D0" in finding.measured
    assert finding.remedy.startswith("rack A01 U4, n1: set the disk with serial S6CTNE0T1")


@pytest.mark.parametrize("disks", [[], [KernelDrive("/dev/vda", "")], [ROOT, KernelDrive("/dev/vda", "")]])
def test_a_disk_without_identity_proves_nothing(disks: list[KernelDrive]) -> None:
    """No disk found, or one without serial and WWN: unmeasured, and the step may be repeated."""
    finding = judge_root(CONTRACT, "overlay", disks, WHERE)
    assert (finding.verdict, finding.deterministic) == (Verdict.INCONCLUSIVE, False)


def test_data_disks_as_they_were() -> None:
    """The root disk is not compared; paths may have changed, serials count."""
    now = [replace(drive, path=f"/dev/nvme{9 - n}n1") for n, drive in enumerate(BEFORE)]
    assert data_to_compare(CONTRACT, BEFORE, now) == ("/dev/nvme9n1", "/dev/nvme7n1")
    (finding,) = judge_data(CONTRACT, BEFORE, now, WHERE)
    assert (finding.verdict, finding.measured) == (Verdict.PASS, "2 as before")
    assert "S6CTNE0D2" in finding.cause


def test_a_data_disk_that_was_written_to_is_named() -> None:
    """Only that one; both fingerprints stand in the finding."""
    now = (replace(DATA[0], fingerprint="f" * 64), ROOT, DATA[1])
    (finding,) = judge_data(CONTRACT, BEFORE, now, WHERE)
    assert (finding.verdict, finding.subject, finding.serial) == (Verdict.FAIL, "S6CTNE0D0", "S6CTNE0D0")
    assert (finding.measured, finding.expected) == ("f" * 64, "0" * 64)


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (BEFORE, (ROOT, DATA[1]), "no longer there"),
        (BEFORE, (replace(DATA[0], fingerprint=""), ROOT, DATA[1]), "could not be read"),
        ((replace(DATA[0], fingerprint=""), ROOT), BEFORE, "was not read before"),
    ],
)
def test_what_cannot_be_compared_is_not_proven(
    before: tuple[KernelDrive, ...], now: tuple[KernelDrive, ...], why: str
) -> None:
    """Gone, unreadable, or never read before: inconclusive on that drive, never a pass."""
    (finding,) = judge_data(CONTRACT, before, now, WHERE)
    assert (finding.verdict, finding.subject) == (Verdict.INCONCLUSIVE, "S6CTNE0D0")
    assert why in finding.cause


def test_a_drive_without_a_name_is_known_by_path_and_size() -> None:
    """Nothing better is known of it; a drive with a name is never taken for it."""
    mute = KernelDrive("/dev/vdb", "", "", "", 1000, "a" * 64)
    (same,) = judge_data(CONTRACT, (mute,), (mute,), WHERE)
    assert same.verdict is Verdict.PASS
    (other,) = judge_data(CONTRACT, (mute,), (replace(mute, size_bytes=2000),), WHERE)
    assert other.verdict is Verdict.INCONCLUSIVE


def test_an_installer_without_a_report_blocks_no_node() -> None:
    """The text states that nothing is proven; it admits, and is never called a pass."""
    assert not_compared().verdict is Verdict.NOT_APPLICABLE
    assert "not proven" in not_compared().cause


def test_no_other_drive_at_all() -> None:
    """A machine with only its root disk passes, and the finding has that."""
    (finding,) = judge_data(CONTRACT, (ROOT,), (ROOT,), WHERE)
    assert (finding.verdict, finding.measured) == (Verdict.PASS, "0 as before")


@pytest.mark.parametrize("before", [(ROOT,), (ROOT, DATA[0])])
def test_a_drive_that_the_installer_did_not_see_is_reported(before: tuple[KernelDrive, ...]) -> None:
    """It may have been written to: a warning with its name, never a pass."""
    now = (*before, DATA[1], KernelDrive("/dev/sr9", ""), KernelDrive("/dev/zram0", "", "", "", 1 << 30))
    (finding,) = judge_data(CONTRACT, before, now, WHERE)
    assert finding.verdict is Verdict.WARN
    assert DATA[1].serial in finding.cause
    assert finding.measured == f"{len(before) - 1} as before, 1 not seen before"


def test_only_drives_that_were_read_before_are_read_again() -> None:
    """By their paths of today; the root disk, and drives that are gone or never were read, are not."""
    moved = replace(DATA[0], path="/dev/nvme7n1")
    assert data_to_compare(CONTRACT, BEFORE, (moved, ROOT)) == ("/dev/nvme7n1",)
    assert data_to_compare(CONTRACT, (ROOT, replace(DATA[0], fingerprint="")), BEFORE) == ()


def test_what_is_unproven_has_the_code_of_its_check() -> None:
    """A root disk that is not known, and data that may have been written to, are two causes."""
    root, data = unproven("root_disk_booted", "unknown"), unproven("data_disks", "unknown", "as before")
    assert (root.code, data.code) == (Code.ROOT_DISK_UNCLEAR, Code.DATA_UNPROVEN)
    assert (root.expected, data.expected) == (None, "as before")
    assert not root.deterministic


@pytest.mark.parametrize("name", [{"serial": "S6CTNE0D0", "wwn": ""}, {"serial": "", "wwn": DATA[0].wwn}])
def test_a_drive_with_one_name_is_never_another_one_at_its_path(name: dict[str, str]) -> None:
    """A drive without a name at the same path, of the same size, is not taken for it."""
    named = replace(DATA[0], **name)
    (finding,) = judge_data(CONTRACT, (named,), (replace(named, serial="", wwn=""),), WHERE)
    assert (finding.verdict, finding.deterministic) == (Verdict.INCONCLUSIVE, False)
    assert "no longer there" in finding.cause


def test_a_drive_of_one_byte_holds_data_and_an_empty_slot_does_not() -> None:
    """Virtual media without a medium have no size."""
    slot = KernelDrive("/dev/sdz", "USB1")
    assert [judge_data(CONTRACT, (), (replace(slot, size_bytes=n),), WHERE)[0].verdict for n in (0, 1)] == [
        Verdict.PASS,
        Verdict.WARN,
    ]


def test_fingerprints_go_to_their_drives() -> None:
    """By path; what was not read has none."""
    reported = with_fingerprints(BEFORE, {"/dev/nvme0n1": "x"})
    assert [drive.fingerprint for drive in reported] == ["x", "", ""]
