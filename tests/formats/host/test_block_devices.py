"""lsblk and findmnt: which whole disks a file system lies on, through everything that may lie between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.block_devices import below, parse_fingerprints, parse_lsblk, whole_disks
from clusterctl.formats.host.mounts import parse_findmnt

DATA = Path(__file__).parent / "data"
"""As util-linux 2.38.1 printed it on a virtual machine."""


def device(
    name: str, number: str, kind: str, above: list[dict[str, Any]] | None = None, **reported: str
) -> dict[str, Any]:
    row = {"name": name, "path": f"/dev/{name}", "maj:min": number, "type": kind, "size": 1 << 40, "model": None}
    return row | reported | ({"children": above} if above else {})


def text(*devices: dict[str, Any]) -> str:
    return json.dumps({"blockdevices": devices})


def test_recorded() -> None:
    """A root file system on a whole disk that reports nothing about itself."""
    (mount,) = parse_findmnt((DATA / "findmnt-2.38.1-vm.json").read_text())
    assert (mount.source, mount.device, "rw" in mount.options) == ("/dev/vda", "254:0", True)
    (disk,) = below(parse_lsblk((DATA / "lsblk-2.38.1-vm.json").read_text()), mount.device, mount.source)
    assert (disk.drive.path, disk.drive.serial, disk.drive.size_bytes) == ("/dev/vda", "", 274877906944)


def test_through_partition_raid_crypt_and_volume() -> None:
    """LVM in dm-crypt on a RAID of two disks' partitions: both disks; the third has nothing to do with it."""
    volume = device("mapper/vg-root", "252:1", "lvm")
    crypt = device("mapper/luks", "252:0", "crypt", [volume])
    raid = device("md0", "9:0", "raid1", [crypt])
    disks = [
        device(name, f"259:{n * 8}", "disk", [device(f"{name}p2", f"259:{n * 8 + 2}", "part", [raid])], serial=f"S{n}")
        for n, name in enumerate(("nvme0n1", "nvme1n1"))
    ]
    devices = parse_lsblk(text(*disks, device("sda", "8:0", "disk", serial="S9")))
    assert [one.drive.serial for one in below(devices, "252:1", "/dev/mapper/vg-root")] == ["S0", "S1"]
    assert [one.drive.serial for one in below(devices, "0:31", "/dev/mapper/vg-root")] == ["S0", "S1"]
    assert [one.drive.serial for one in whole_disks(devices)] == ["S0", "S1", "S9"]


def test_a_disk_with_two_paths_is_one_disk() -> None:
    """Multipath: two devices of one WWN."""
    root = device("mapper/mpatha-part2", "252:2", "part")
    path = device("mapper/mpatha", "252:0", "mpath", [root])
    paths = [
        device(f"sd{letter}", f"8:{n * 16}", "disk", [path], serial="S1", wwn="0x5000c500a0000001")
        for n, letter in enumerate("ab")
    ]
    (disk,) = below(parse_lsblk(text(*paths)), "252:2", "")
    assert disk.drive.path == "/dev/sda"


def test_what_is_on_no_disk() -> None:
    """A loop device is reported as what it is; an overlay is on nothing that lsblk knows."""
    devices = parse_lsblk(text(device("loop0", "7:0", "loop"), device("sda", " 8:0  ", "disk", serial="S1")))
    assert [one.kind for one in below(devices, "7:0", "/dev/loop0")] == ["loop"]
    assert below(devices, "0:40", "overlay") == ()
    assert [one.device for one in whole_disks(devices)] == ["8:0"]


@pytest.mark.parametrize("reported", ["", "{}", '{"blockdevices": [{"path": 1}]}', "lsblk: no such column"])
def test_what_is_not_understood_is_an_error(reported: str) -> None:
    """Never an empty list of disks."""
    for parse in (parse_lsblk, parse_findmnt):
        with pytest.raises(ParseError):
            parse(reported)


def test_fingerprints() -> None:
    """By path: the digest, or why there is none."""
    reported = parse_fingerprints('{"/dev/a": {"fingerprint": "00"}, "/dev/b": {"error": "Input/output error"}}')
    assert (reported["/dev/a"].digest, reported["/dev/b"].digest, reported["/dev/b"].error) == (
        "00",
        "",
        "Input/output error",
    )
    with pytest.raises(ParseError):
        parse_fingerprints("sudo: a password is required")


def test_what_lies_on_a_disk() -> None:
    """A signature, the disk's own or one above it; devices without any are content, and no signature."""
    disks = [
        device("sda", "8:0", "disk", [device("sda1", "8:1", "part", fstype="ext4")], pttype="gpt"),
        device("sdb", "8:16", "disk", [device("sdb1", "8:17", "part")]),
        device("sdc", "8:32", "disk", fstype="LVM2_member"),
        device("sdd", "8:48", "disk"),
    ]
    found = [(one.drive.content, one.signed) for one in parse_lsblk(text(*disks))]
    assert found == [("gpt", True), ("other devices", False), ("LVM2_member", True), ("", False)]
