"""What a machine reports about itself before anything is written to it, by every shell that may run the probe."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clusterctl.edges.os_images.initramfs import script
from tests.edges.os_images.sysfs_kit import Sysfs

MEBIBYTE = 1 << 20
SHELLS = {"busybox ash": ("busybox", "ash"), "dash": ("dash",)}


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    argv = SHELLS[request.param]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    return argv


@pytest.fixture
def machine(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path / "machine")


def probe(shell: tuple[str, ...], machine: Sysfs) -> list[str]:
    """The report's lines without the last, the clock, which must be a number."""
    environment = {"PATH": os.environ["PATH"], "PROBE_ROOT": str(machine.root)}
    argv = [*shell, "-c", script("probe.sh").decode()]
    result = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=600, check=True)
    *lines, clock = result.stdout.splitlines()
    assert clock.removeprefix("clock=").isdigit()
    assert result.stderr == ""
    return lines


def fingerprint(path: Path, size: int) -> str:
    """As the interface defines it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        if size <= 32 * MEBIBYTE:
            return hashlib.sha256(file.read()).hexdigest()
        places = [(0, MEBIBYTE), (size - MEBIBYTE, MEBIBYTE)]
        places += [(i * (size // 15) // 4096 * 4096, 65536) for i in range(1, 15)]
        for offset, length in places:
            file.seek(offset)
            digest.update(file.read(length))
    return digest.hexdigest()


def scribbled(path: Path, size: int) -> Path:
    """A sparse file with something else in each MiB."""
    with path.open("wb") as file:
        file.truncate(size)
        for number in range(size // MEBIBYTE):
            file.seek(number * MEBIBYTE + number % 17 * 4096)
            file.write(os.urandom(64))
    return path


def test_the_report_is_exact(shell: tuple[str, ...], machine: Sysfs, tmp_path: Path) -> None:
    """Board, ports and disks in the interface's form; words of firmware are trimmed and made plain."""
    machine.board(product_serial="SN0001 ", product_uuid="4c4c4544-0051", sys_vendor="Super\tMicro", product_name="SYS")
    machine.port("eth0", "aa:bb:cc:00:00:01")
    disk = scribbled(tmp_path / "disk", 64 * MEBIBYTE + 512)
    reported = {"device__serial": "  S5XX NX0 ", "wwid": "eui.0025385b11", "device__model": "SAMSUNG  MZ\t1  "}
    machine.block("nvme0n1", disk, **reported)
    size = 64 * MEBIBYTE + 512
    assert probe(shell, machine) == [
        "serial=SN0001",
        "uuid=4c4c4544-0051",
        "manufacturer=Super Micro",
        "product=SYS",
        "mac=aa:bb:cc:00:00:01",
        f"disk=/dev/nvme0n1\tS5XX NX0\teui.0025385b11\t{size}\tSAMSUNG  MZ 1\t{fingerprint(disk, size)}",
    ]


def test_small_disks_are_read_whole(shell: tuple[str, ...], machine: Sysfs) -> None:
    """Up to 32 MiB every byte counts."""
    content = os.urandom(MEBIBYTE // 2)
    machine.block("vda", content, serial="V1")
    (line,) = [line for line in probe(shell, machine) if line.startswith("disk=")]
    assert line == f"disk=/dev/vda\tV1\t\t{len(content)}\t\t{hashlib.sha256(content).hexdigest()}"


def test_a_change_anywhere_it_looks_changes_the_fingerprint(
    shell: tuple[str, ...], machine: Sysfs, tmp_path: Path
) -> None:
    """Begin, end and each piece between."""
    size = 48 * MEBIBYTE
    disk = scribbled(tmp_path / "disk", size)
    machine.block("sda", disk)
    seen = {probe(shell, machine)[-1]}
    places = [0, MEBIBYTE - 1, size - 1, *(i * (size // 15) // 4096 * 4096 + 65535 for i in (1, 7, 14))]
    for offset in places:
        with disk.open("r+b") as file:
            file.seek(offset)
            byte = file.read(1)
            file.seek(offset)
            file.write(bytes([byte[0] ^ 0xFF]))
        seen.add(probe(shell, machine)[-1])
    assert len(seen) == 1 + len(places)


def test_the_serial_of_a_sata_or_sas_disk_is_on_its_own_page(shell: tuple[str, ...], machine: Sysfs) -> None:
    """`vpd_pg80` begins with four bytes that are no serial; the WWN is the device's, not the block device's."""
    page = b"\x00\x80\x00\x14" + b"    ZC1A2B3C        "
    machine.block("sda", 8192, device__vpd_pg80=page, device__wwid="naa.5000c500a1b2c3d4", device__model="ST1")
    (line,) = [line for line in probe(shell, machine) if line.startswith("disk=")]
    assert line.split("\t")[:4] == ["disk=/dev/sda", "ZC1A2B3C", "naa.5000c500a1b2c3d4", "8192"]


def test_only_disks_that_can_hold_an_os_are_reported(shell: tuple[str, ...], machine: Sysfs) -> None:
    """No memory, loops, CDs, partitions, empty slots, hidden paths, sticks or virtual media."""
    machine.block("sda", 8192)
    machine.block("sda1", 4096, partition="1")
    machine.block("sdb", 8192, bus="pci0000:00/usb1/1-1")
    machine.block("sdc", 8192, removable="1")
    machine.block("sdd", 0)
    machine.block("nvme0c0n1", 8192, hidden="1")
    for name in ("loop0", "sr0", "ram0", "zram0", "dm-0", "md127", "mmcblk0boot0"):
        machine.block(name, 8192)
    assert [line.split("\t")[0] for line in probe(shell, machine) if line.startswith("disk=")] == ["disk=/dev/sda"]


def test_ports_are_reported_by_their_permanent_address(shell: tuple[str, ...], machine: Sysfs) -> None:
    """Nothing virtual, no InfiniBand; a member of a bond by its own address."""
    machine.port("lo", "00:00:00:00:00:00", kind="772", real=False)
    machine.port("bond0", "aa:bb:cc:00:00:01", real=False)
    machine.port("eth0", "aa:bb:cc:00:00:01", permanent="aa:bb:cc:00:00:02")
    machine.port("ib0", "80:00:02:08:fe:80", kind="32")
    assert [line for line in probe(shell, machine) if line.startswith("mac=")] == ["mac=aa:bb:cc:00:00:02"]


def test_a_machine_that_reports_nothing_is_reported_as_that(shell: tuple[str, ...], machine: Sysfs) -> None:
    """Empty values, no invented ones."""
    machine.root.mkdir()
    assert probe(shell, machine) == ["serial=", "uuid=", "manufacturer=", "product="]


def test_a_disk_that_cannot_be_read_has_no_fingerprint(shell: tuple[str, ...], machine: Sysfs) -> None:
    """Rather none than one of half the disk."""
    machine.block("sda", 8192, device__model="BROKEN")
    (machine.root / "dev/sda").unlink()
    (machine.root / "dev/sda").mkdir()
    assert probe(shell, machine)[-1] == "disk=/dev/sda\t\t\t8192\tBROKEN\t"
