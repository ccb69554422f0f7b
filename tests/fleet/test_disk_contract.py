"""The root disk is one drive of all that a machine sees, or none is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clusterctl.fleet.errors import EdgeError, RootDiskUnclearError
from clusterctl.fleet.hardware.disk_contract import (
    SMALLEST_ROOT,
    DiskContract,
    KernelDrive,
    same_identity,
    same_name,
    which_rule,
)
from clusterctl.fleet.hardware.sku import RootDisk

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


@pytest.mark.parametrize(
    ("size", "fits"),
    [(SMALLEST_ROOT - 1, False), (SMALLEST_ROOT, True), (ROOT.size_bytes, True), (ROOT.size_bytes + 1, False)],
)
def test_a_rule_by_size_takes_its_own_limits(size: int, fits: bool) -> None:
    """From the smallest drive that an OS needs, 16 GB, up to `max`, both included."""
    assert SMALLEST_ROOT == 16 * 10**9
    rule = RootDisk(max_bytes=ROOT.size_bytes, chosen_by="host")
    assert DiskContract("", "", rule).fits(replace(ROOT, size_bytes=size)) is fits


def test_a_rule_for_a_larger_drive_leaves_smaller_ones_alone() -> None:
    contract = DiskContract("", "", RootDisk(min_bytes=ROOT.size_bytes, chosen_by="host"))
    assert contract.fits(ROOT)
    assert not contract.fits(replace(ROOT, size_bytes=ROOT.size_bytes - 1))


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (RootDisk(serial=ROOT.serial, chosen_by="host"), True),
        (RootDisk(serial=DATA[0].serial, chosen_by="host"), False),
        (RootDisk(wwn=ROOT.wwn, chosen_by="host"), True),
        (RootDisk(wwn=DATA[0].wwn, chosen_by="host"), False),
        (RootDisk(model="mz1l2", chosen_by="host"), True),
        (RootDisk(model="MZWLO", chosen_by="host"), False),
        (RootDisk(serial=ROOT.serial, model="MZWLO", chosen_by="host"), False),
    ],
)
def test_a_drive_is_as_the_rule_asks_in_every_field(rule: RootDisk, fits: bool) -> None:
    assert DiskContract("", "", rule).fits(ROOT) is fits


def test_a_drive_that_was_chosen_by_a_rule_is_one_drive_from_then_on() -> None:
    """Of two alike drives one is chosen and named; later that one is meant, and not any of the two."""
    pair = [ROOT, replace(ROOT, path="/dev/nvme3n1", serial="S6CTNE0T0", wwn="eui.1")]
    contract = DiskContract("", "", RootDisk(model="MZ1L2960", one_of=2, chosen_by="host"))
    chosen = contract.choose([*DATA, *pair])
    assert chosen is pair[1], "the first by serial, whatever the order of the paths"
    named = contract.named(chosen)
    assert (named.serial, named.wwn, named.by_rule) == ("S6CTNE0T0", "eui.1", False)
    assert named.choose([*DATA, *pair]) is pair[1]


@pytest.mark.parametrize("other", [{"model": "MZ1L2961"}, {"size_bytes": ROOT.size_bytes + 1}])
def test_two_drives_that_are_not_alike_are_not_chosen_between(other: dict[str, str | int]) -> None:
    """`one_of: 2` means drives of one model and size."""
    contract = DiskContract("", "", RootDisk(model="MZ1L296", one_of=2, chosen_by="host"))
    with pytest.raises(RootDiskUnclearError, match="2 drives"):
        contract.choose([ROOT, replace(ROOT, serial="S6CTNE0T0", **other)])


def test_a_drive_without_serial_and_wwn_gets_no_os() -> None:
    """It could not be proven after the first boot."""
    contract = DiskContract("", "", RootDisk(model="MZ1L2960", chosen_by="host"))
    with pytest.raises(RootDiskUnclearError, match="neither serial nor WWN") as caught:
        contract.choose([replace(ROOT, serial="", wwn="")], "node007")
    assert caught.value.where == "node007"
    assert contract.choose([replace(ROOT, serial="")]).wwn == ROOT.wwn
    assert contract.choose([replace(ROOT, wwn="")]).serial == ROOT.serial


def test_a_rule_that_fits_no_drive_is_another_error_than_a_drive_that_is_gone() -> None:
    """The first is for the author of the SKU, the second for the operator at the rack."""
    rule = DiskContract("", "", RootDisk(model="none", chosen_by="host"))
    with pytest.raises(RootDiskUnclearError) as unclear:
        rule.choose(ALL)
    assert "root_disk" in unclear.value.remedy
    with pytest.raises(EdgeError) as gone:
        DiskContract("OTHER", rule=RootDisk(one_of=2)).choose(ALL)
    assert type(gone.value) is EdgeError


def test_the_remedy_names_what_distinguishes_the_drives() -> None:
    """`one_of` for several alike ones only; the fields of the BMC only where the BMC decides."""
    assert "one_of: 2" in which_rule([ROOT, ROOT], ("model",))
    for drives in ([ROOT], [ROOT, DATA[0]], []):
        assert "write a rule with chosen_by: host" in which_rule(drives, ("model",))
    assert "chosen_by" not in which_rule([ROOT, DATA[0]], ("model", "bay"))


@pytest.mark.parametrize("prefix", ["0x", "naa.", "eui.", "nvme.", ""])
def test_world_wide_names_are_compared_without_their_prefix(prefix: str) -> None:
    assert same_name(f"{prefix}0025-384B:11B1", "0025384b11b1")
    assert not same_name(f"{prefix}0025384b11b2", "0025384b11b1")
    assert not same_name(prefix, "")
