"""What a virtual machine is made of: drives, firmware's words, arguments."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import yaml

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.boot import BootTarget
from clusterctl_lab.emulators.host_tools import guest_tools
from clusterctl_lab.healthy import build
from clusterctl_lab.host_files import in_share
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.metal import as_metal, inject_metal
from clusterctl_lab.metal.command_line import Places, command_line
from clusterctl_lab.metal.console import FirmwareReader
from clusterctl_lab.metal.drives import MetalDrives
from clusterctl_lab.metal.share import Shares
from clusterctl_lab.metal.site import metal_skus
from clusterctl_lab.metal.wires import plug, rail_mac
from clusterctl_lab.vendor import Vendor

LAYOUT = Layout(IPv4Network("10.77.0.0/16"))
RECORDED = Path(__file__).parent / "recorded"


def machine(number: int = 1, vendor: Vendor = Vendor.DELL) -> Machine:
    return as_metal(build(number, LAYOUT, "x", vendor=vendor))


def arguments(of: Machine, *devices: str, authorities: Path | None = None) -> list[str]:
    drives = {drive.serial: Path(f"/{drive.serial}.raw") for drive in of.drives}
    places = Places(Path("/v.fd"), drives, Path("/console"), Path("/share"), authorities)
    return list(command_line(of, devices, places))


def test_the_second_machine_has_its_root_disk_between_two_drives_of_its_size() -> None:
    """Neither a size nor a position decides which drive gets the OS."""
    drives = machine(2).drives
    assert [drive.boot for drive in drives] == [False, True, False, False, False]
    assert len({drive.size_bytes for drive in drives}) == 1


@pytest.mark.parametrize("vendor", Vendor)
def test_the_sku_of_virtual_metal_names_one_root_disk(vendor: Vendor) -> None:
    """Its rule fits exactly one drive of each machine, and all counts are the machine's."""
    made = machine(2, vendor)
    ((name, text),) = metal_skus([made, machine(1, vendor)])
    sku = yaml.safe_load(text)
    assert sku["name"] == name
    assert [drive.boot for drive in made.drives if sku["root_disk"]["model"] in drive.model] == [True]
    assert (sku["gpu_count"], sku["hca_count"], sku["data_drive_count"]) == (8, 8, 4)
    assert (sku["cpu_count"], sku["memory_gib"]) == (1, 1)


def test_the_firmware_trusts_the_enrolled_authorities() -> None:
    """Without any, it is given no list: OVMF then trusts no server."""
    given = "name=etc/edk2/https/cacerts,file=/a.esl"
    assert given in arguments(machine(), authorities=Path("/a.esl"))
    assert not any("cacerts" in word for word in arguments(machine()))


def test_the_firmware_tries_the_ordered_devices_and_nothing_else() -> None:
    """The root disk and the network card carry their places in the order; data drives none."""
    words = " ".join(arguments(machine(), "02:1a:ee:00:00:01", "BOSS0001"))
    assert "mac=02:1a:ee:00:00:01,romfile=,bootindex=0" in words
    assert "serial=BOSS0001,bootindex=1" in words
    assert words.count("bootindex") == 2
    assert words.count("-device nvme") == 5


def test_the_machines_os_and_its_bmc_report_the_same() -> None:
    """Serial and UUID in SMBIOS are those of Redfish; a comma in a name is no end of it."""
    reported = arguments(replace(machine(), manufacturer="Maker, Inc."))
    identity = reported[reported.index("-smbios") + 1]
    assert identity == (
        "type=1,manufacturer=Maker,, Inc.,product=PowerEdge XE9680,serial=LAB0001,"
        "uuid=4c4c4544-0041-4210-8030-ccc04f303031"
    )


def test_each_rail_has_a_card_of_its_own() -> None:
    """Jumbo frames, a MAC that no other card of the lab has, and nothing is ever booted from it."""
    words = arguments(machine(2))
    cards = [word for word in words if word.startswith("virtio-net-pci") and "net0" not in word]
    assert len(cards) == 8
    assert all("host_mtu=9000" in card and "bootindex" not in card for card in cards)
    macs = {rail_mac(machine(number), hca) for number in (1, 2) for hca in machine(number).hcas}
    assert len(macs) == 16
    assert {machine(1).boot_mac, machine(2).boot_mac}.isdisjoint(macs)


def test_wires_follow_the_cables() -> None:
    """A tap for each rail on its own bridge; one whose cable is pulled is down."""
    whole = machine()
    pulled = replace(whole, hcas=(replace(whole.hcas[0], cable=None), *whole.hcas[1:]))
    batch = plug(pulled).splitlines()
    assert "link set h1m master mgmt up" in batch
    assert "link set h1r0 master rail0 down" in batch
    assert "link set h1r1 master rail1 up" in batch
    assert sum(line.startswith("tuntap add") for line in batch) == 9


def test_what_a_guest_reads_of_its_machine_is_what_it_is_now(tmp_path: Path) -> None:
    """The shared folder has the facts of this moment and holds no secret."""
    shares, whole = Shares(tmp_path), machine()
    shares.write(whole, in_share(whole))
    facts = shares.path(whole) / "machine.json"
    assert len(json.loads(facts.read_text())["gpus"]) == 8
    (broken,) = inject_metal({"node001": whole}, "missing-gpu", "node001")
    shares.write(broken, in_share(broken))
    assert len(json.loads(facts.read_text())["gpus"]) == 7
    assert sorted(path.name for path in shares.path(whole).iterdir()) == ["machine.json"]
    assert all(b"password" not in path.read_bytes() for path in shares.path(whole).iterdir())


def test_a_guest_has_stand_ins_only_for_what_it_lacks() -> None:
    """Drives, memory, mounts and swap are its own, and its real tools report them; package sources are the lab's."""
    assert {"nvidia_smi.py", "dmidecode.py"} <= {Path(path).name for path in guest_tools()}
    programs = {Path(path).name for path, (_, mode) in guest_tools().items() if mode == 0o755}
    assert {"nvidia-smi", "ibstat", "lspci", "dmesg", "ib_write_bw"} <= programs
    assert programs.isdisjoint({"dmidecode", "findmnt", "lsblk", "swapon"})


def test_faults_reach_the_machine() -> None:
    """A swapped board reports another serial, a lost drive is not there, a dead one fails every request."""
    machines = {"node001": machine()}
    (swapped,) = inject_metal(machines, "wrong-serial", "node001")
    assert "serial=XXLAB0001," in " ".join(arguments(swapped))
    (lost,) = inject_metal(machines, "missing-nvme", "node001:root")
    assert "BOSS0001" not in " ".join(arguments(lost))
    (dead,) = inject_metal(machines, "dead-nvme", "node001:bay2")
    assert "file.inject-error.0.errno=5,file.image.driver=file,file.image.filename=/NVME00012.raw" in " ".join(
        arguments(dead)
    )


@pytest.mark.parametrize("target", ["node001:NVME00012", "node001:bay2"])
def test_a_pulled_disk_is_out_of_a_port_of_its_own(target: str) -> None:
    """Named by serial or bay; it is gone from the next start too, and each drive can be pulled alone."""
    ports = [word for word in arguments(machine()) if word.startswith("pcie-root-port")]
    assert ports == [f"pcie-root-port,id=bay{number},chassis={number + 1}" for number in range(5)]
    (pulled,) = inject_metal({"node001": machine()}, "pulled-disk", target)
    assert [drive.serial for drive in pulled.drives if drive.pulled] == ["NVME00012"]
    assert pulled.faults == ("pulled-disk:bay2",)
    assert "NVME00012" not in " ".join(arguments(pulled))


def test_only_a_data_drive_can_be_pulled() -> None:
    """The root disk is inside of the machine."""
    with pytest.raises(UsageError, match="has no BOSS0001"):
        inject_metal({"node001": machine()}, "pulled-disk", "node001:BOSS0001")


def test_what_virtual_metal_cannot_show_is_refused() -> None:
    """A fault that no machine has is not reported as present."""
    with pytest.raises(UsageError, match="no slow-nic with --metal qemu"):
        inject_metal({"node001": machine()}, "slow-nic", "node001")


def test_drives_take_the_room_of_what_is_on_them(tmp_path: Path) -> None:
    """Full size to the machine, none on the disk; what is on one outlives the next power-on."""
    drives, of = MetalDrives(tmp_path), machine()
    drives.insert(of)
    root = next(drive for drive in of.drives if drive.boot)
    path = drives.path(of, root)
    assert path.stat().st_size == root.size_bytes
    assert path.stat().st_blocks == 0
    assert not drives.partitioned(of, root)
    with path.open("r+b") as file:
        file.seek(512)
        file.write(b"EFI PART")
    drives.insert(of)
    assert drives.partitioned(of, root)


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        ("network_then_setup", ["left POST", BootTarget.PXE]),
        ("disk", ["left POST", BootTarget.HDD]),
    ],
)
def test_the_firmware_is_understood_whatever_pieces_its_output_comes_in(
    recording: str, expected: list[object], size: int
) -> None:
    """What it starts: the network's loader; a drive's; its own setup program is nothing that was booted."""
    received: list[object] = []
    reader = FirmwareReader(lambda: received.append("left POST"), received.append)
    console = (RECORDED / f"{recording}.console").read_bytes()
    for start in range(0, len(console), size):
        reader.feed(console[start : start + size])
    assert received == expected
