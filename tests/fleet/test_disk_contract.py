"""The root disk is one drive of all that a machine sees, or none is written."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.hardware.disk_contract import DiskContract, KernelDrive, same_identity

ROOT = KernelDrive("/dev/nvme1n1", "S6CTNE0T1", "eui.0025384b11b12d3c", "MZ1L2960", 960_197_124_096)
DATA = [KernelDrive(f"/dev/nvme{n}n1", f"S6CTNE0D{n}", f"eui.00253{n}", "MZWLO7T6", 7_681_501_126_656) for n in (0, 2)]
ALL = [DATA[0], ROOT, DATA[1]]


def test_the_one_with_the_serial_is_chosen_between_equal_others() -> None:
    """Order, path and size decide nothing."""
    assert DiskContract("S6CTNE0T1").choose(ALL) is ROOT
    assert DiskContract("s6ctne0t1 ").choose(ALL[::-1]) is ROOT


def test_a_wwn_stands_for_a_serial_that_reads_otherwise() -> None:
    """By whatever prefix the tools write it."""
    contract = DiskContract("OTHER", "0x0025384B11B12D3C")
    assert contract.choose(ALL) is ROOT


@pytest.mark.parametrize(
    ("drives", "words"),
    [
        (DATA, "no drive with the root disk's serial S6CTNE0T1; it sees /dev/nvme0n1 S6CTNE0D0"),
        ([], "it sees none at all"),
        ([ROOT, ROOT], "2 drives with the root disk's"),
    ],
)
def test_none_or_several_are_refused_with_all_that_there_is(drives: list[KernelDrive], words: str) -> None:
    """The error names every drive and what to do."""
    with pytest.raises(EdgeError, match=words) as caught:
        DiskContract("S6CTNE0T1").choose(drives, "node007")
    assert caught.value.where == "node007"
    assert "reseat or replace" in caught.value.remedy


def test_what_is_missing_is_equal_to_nothing() -> None:
    """A drive without a serial never fits a contract without one."""
    mute = KernelDrive("/dev/sda", "")
    assert not DiskContract("").fits(mute)
    assert not DiskContract("A").fits(mute)
    assert not same_identity("", "")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("S64GNE0R", "s64gne0r", True),
        ("PHLJ 1234_AB", "PHLJ1234AB", True),
        ("S64GNE0R", "S64GNE0", False),
        ("S64GNE0R", "SAMSUNG_S64GNE0R", False),
    ],
)
def test_serials_are_compared_whole(one: str, other: str, same: bool) -> None:
    """A part of a serial is another serial."""
    assert same_identity(one, other) is same
