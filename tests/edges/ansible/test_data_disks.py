"""Which disks the storage roles use: every disk that holds anything is refused unless it was named to lose it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.resources import resource

PROGRAM = resource("roles") / "data_disks/files/data_disks.py"
SIZE = 3_840_755_982_336


def program() -> Any:
    spec = importlib.util.spec_from_file_location("data_disks", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAM_MODULE = program()


def device(
    path: str, kind: str, *mounts: str, children: tuple[dict[str, Any], ...] = (), **reported: Any
) -> dict[str, Any]:
    """A row of lsblk's tree."""
    common = {"name": path[5:], "path": path, "type": kind, "size": SIZE, "rota": False, "ro": False, "rm": False}
    return {**common, "serial": None, "mountpoints": [*mounts] or [None], "children": list(children), **reported}


def disk(number: int, *children: dict[str, Any], **reported: Any) -> dict[str, Any]:
    return device(f"/dev/nvme{number}n1", "disk", children=children, serial=f"S{number}", **reported)


def part(number: int, *mounts: str, children: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return device(f"/dev/nvme{number}n1p1", "part", *mounts, children=children)


def member(number: int, label: str = "data", kind: str = "zfs_member") -> dict[str, str]:
    return {"device": f"nvme{number}n1p1", "type": kind, "label": label, "uuid": "1"}


def table(number: int) -> dict[str, Any]:
    return {"device": f"nvme{number}n1", "type": "gpt", "label": None, "uuid": "2"}


OS = disk(0, part(0, "/"))
LINKS = {
    name: f"/dev/nvme{number}n1"
    for number in range(6)
    for name in (f"nvme-Maker_Model_S{number}", f"nvme-Maker_Model_S{number}_1", f"nvme-eui.36{number}")
}


def decide(
    *disks: dict[str, Any],
    signatures: tuple[dict[str, Any], ...] = (),
    members: tuple[str, ...] | None = None,
    links: dict[str, str] = LINKS,
    **asked: Any,
) -> dict[str, Any]:
    request = {"kind": "zfs_member", "name": "data", "serials": [], "overwrite": [], **asked}
    found: dict[str, Any] = PROGRAM_MODULE.decide(request, [OS, *disks], signatures, links, members)
    return found


def serials(document: dict[str, Any]) -> list[str]:
    return [one["serial"] for one in document["disks"]]


def test_all_blank_disks_but_the_systems_are_taken_by_their_names() -> None:
    """The name is udev's by model and serial number, not its duplicate by namespace and not the EUI."""
    found = decide(disk(2), disk(1))
    assert (found["action"], found["refused"], found["wipe"], found["size"]) == ("create", [], [], 2 * SIZE)
    assert [(one["serial"], one["id"]) for one in found["disks"]] == [
        ("S1", "nvme-Maker_Model_S1"),
        ("S2", "nvme-Maker_Model_S2"),
    ]


@pytest.mark.parametrize(
    "other",
    [
        disk(1, rota=True),
        disk(1, rm=True),
        disk(1, ro=True),
        disk(1, size=0),
        {**disk(1), "serial": None},
        device("/dev/loop0", "loop", serial="S1"),
        disk(1, part(1, "/boot/efi")),
        disk(1, part(1, children=(device("/dev/mapper/vg-var", "lvm", "/var"),))),
    ],
    ids=["rotates", "removable", "read-only", "empty", "without serial", "no disk", "the ESP", "LVM with /var"],
)
def test_what_is_no_data_disk_is_not_taken(other: dict[str, Any]) -> None:
    """The rule leaves out whatever may be something else."""
    assert serials(decide(other, disk(2))) == ["S2"]


@pytest.mark.parametrize(
    ("held", "signatures", "reported"),
    [
        (disk(1, part(1)), (table(1),), "gpt"),
        (disk(1), ({**table(1), "type": "ext4", "label": "srv"},), "ext4 srv"),
        (disk(1, part(1)), (table(1), member(1, "tank")), "zfs_member tank"),
        (disk(1), ({**table(1), "type": "linux_raid_member", "label": "old:0"},), "linux_raid_member 0"),
    ],
)
def test_a_disk_that_holds_data_is_refused_unless_it_is_named(
    held: dict[str, Any], signatures: tuple[dict[str, Any], ...], reported: str
) -> None:
    """Refused with its serial number and what is on it; named, all of its signatures go, those of partitions first."""
    refused = decide(held, disk(2), signatures=signatures)
    assert refused["action"] == "refuse"
    (why,) = refused["refused"]
    assert why.startswith("S1: /dev/nvme1n1 holds data")
    assert reported in why
    named = decide(held, disk(2), signatures=signatures, overwrite=["S1"])
    assert named["action"] == "create"
    assert named["wipe"] == [row["path"] for row in [*held["children"], held]]


def test_the_output_of_the_real_wipefs_is_understood(tmp_path: Path) -> None:
    """Disks with a swap area's and without any signature, asked together: the first is refused for what it holds."""
    disks = [device(str(tmp_path / f"nvme{number}n1"), "disk", serial=f"S{number}") for number in (1, 2)]
    for one in disks:
        Path(one["path"]).touch()
        os.truncate(one["path"], 1 << 20)
    subprocess.run(["mkswap", "--label", "old", disks[0]["path"]], check=True, capture_output=True)
    links = {f"nvme-Maker_{one['serial']}": one["path"] for one in disks}
    found = decide(*disks, signatures=tuple(PROGRAM_MODULE.read_signatures(disks)), links=links)
    assert found["refused"] == [
        f"S1: {disks[0]['path']} holds data (swap old); to lose it, name the serial number in overwrite"
    ]


@pytest.mark.parametrize(
    "busy",
    [
        disk(1, part(1, "/srv")),
        disk(1, part(1, "[SWAP]")),
        disk(1, device("/dev/md0", "raid0")),
    ],
    ids=["mounted", "swap", "in an array"],
)
def test_what_is_in_use_is_refused_also_when_it_is_named(busy: dict[str, Any]) -> None:
    """A mounted disk is never taken."""
    found = decide(busy, disk(2), signatures=(table(1),), overwrite=["S1"])
    assert found["action"] == "refuse"
    assert "is in use" in found["refused"][0]


def test_its_own_pool_is_accepted_running_and_taken_up_where_it_does_not_run() -> None:
    """A reinstalled host finds its data again."""
    disks, signatures = (disk(1, part(1)), disk(2, part(2))), (table(1), member(1), table(2), member(2))
    running = decide(*disks, signatures=signatures, members=("/dev/nvme1n1p1", "/dev/nvme2n1p1"))
    assert (running["action"], running["refused"]) == ("accept", [])
    assert decide(*disks, signatures=signatures)["action"] == "import"


def test_a_pool_that_lost_a_disk_is_accepted() -> None:
    """The disk is not seen any more: nothing contradicts the pool, also where its serial number is asked for."""
    disks = (disk(1, part(1)), disk(2, part(2)))
    members = ("/dev/nvme1n1p1", "/dev/nvme2n1p1")
    assert decide(*disks, members=members)["action"] == "accept"
    assert decide(*disks, members=members, serials=["S1", "S2", "S3"])["action"] == "accept"


def test_a_pool_with_other_members_is_refused() -> None:
    """One disk more or one less than is meant: each is named."""
    disks = (disk(1, part(1)), disk(2, part(2)), disk(3))
    more = decide(*disks, members=("/dev/nvme1n1p1", "/dev/nvme2n1p1"))
    assert (more["action"], more["refused"]) == ("refuse", ["S3: /dev/nvme3n1 is meant, and not in data, which exists"])
    less = decide(*disks, members=("/dev/nvme1n1p1", "/dev/nvme2n1p1"), serials=["S1"])
    assert less["refused"] == ["S2: /dev/nvme2n1 is in data, and not meant"]


def test_another_pool_of_the_same_label_in_part_is_refused_and_never_wiped() -> None:
    """Half of the disks carry the pool: what is on the others must not be guessed."""
    found = decide(disk(1, part(1)), disk(2), signatures=(table(1), member(1)), overwrite=["S1", "S2"])
    assert (found["action"], found["wipe"]) == ("refuse", [])


def test_an_array_is_known_by_its_name_whatever_host_made_it() -> None:
    """The label is `HOST:NAME`, as mdadm writes it."""
    found = decide(
        disk(1),
        signatures=({**table(1), "type": "linux_raid_member", "label": "old-name:scratch"},),
        kind="linux_raid_member",
        name="scratch",
    )
    assert found["action"] == "import"


@pytest.mark.parametrize(
    ("disks", "asked", "why"),
    [
        ((disk(1),), {"serials": ["S9"]}, "S9: this host has no disk with this serial number"),
        ((disk(1),), {"serials": ["S0"]}, "S0: /dev/nvme0n1 holds the operating system"),
        ((disk(1), {**disk(2), "serial": "S1"}), {}, "S1: /dev/nvme1n1 and /dev/nvme2n1 report this serial number"),
        ((), {}, "this host has no solid-state disk apart from those of the operating system"),
        ((disk(1),), {"links": {}}, "S1: /dev/nvme1n1 has no name in /dev/disk/by-id"),
    ],
)
def test_what_proves_nothing_is_refused(disks: tuple[dict[str, Any], ...], asked: dict[str, Any], why: str) -> None:
    """An unknown serial number, the system's, or one of two disks; no disk at all; a disk without a name."""
    found = decide(*disks, **asked)
    assert found["action"] == "refuse"
    assert any(line.startswith(why) for line in found["refused"]), found["refused"]


def test_without_the_systems_disk_the_rule_takes_nothing() -> None:
    """Where the disks of the system are unknown, the data disks have to be named."""
    request = {"kind": "zfs_member", "name": "data", "serials": [], "overwrite": []}
    found = PROGRAM_MODULE.decide(request, [disk(1)], (), LINKS, None)
    assert found["action"] == "refuse"
    assert "no disk is seen to hold the operating system" in found["refused"][0]


def test_it_reads_a_real_machine() -> None:
    """Run as the roles run it, on this machine: one document; nothing is changed, and a disk in use is never free."""
    request = json.dumps({"kind": "zfs_member", "name": "data", "serials": [], "overwrite": []})
    ran = subprocess.run(
        [sys.executable, "-", request], stdin=PROGRAM.open(), capture_output=True, text=True, check=False, timeout=600
    )
    if "No such file" in ran.stderr and "wipefs" in ran.stderr:
        pytest.skip("wipefs is not on this machine")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert document["action"] in {"accept", "import", "create", "refuse"}
    mounted = {line.split()[0] for line in Path("/proc/mounts").read_text().splitlines() if line.startswith("/dev/")}
    assert not mounted & {one["path"] for one in document["disks"]} or document["action"] == "refuse"
