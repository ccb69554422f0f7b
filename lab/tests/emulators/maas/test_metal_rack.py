"""What the lab's MAAS serves to machines that boot: dnsmasq's configuration, the HTTP service, the look at a machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.maas.metal.dnsmasq import Dnsmasq, Served, configuration
from clusterctl_lab.emulators.maas.metal.report import parse
from clusterctl_lab.emulators.maas.metal.web import application
from lab.tests.emulators.maas.metal_boot_kit import BASE, IMAGE, Rack, report_text
from tests.edges.os_images.sysfs_kit import Sysfs

needs_dnsmasq = pytest.mark.skipif(shutil.which("dnsmasq", path="/usr/sbin:/usr/bin") is None, reason="no dnsmasq")


def rendered(rack: Rack, interface: str = "mm-mgmt") -> str:
    served = Served(interface, Path("/nowhere/tftp"), f"{BASE}/boot.ipxe")
    return configuration(rack.world.layout, rack.world.machines.values(), served)


@needs_dnsmasq
def test_dnsmasq_understands_its_configuration(tmp_path: Path) -> None:
    """By its own test; every machine of the lab has its own address."""
    file = tmp_path / "dnsmasq.conf"
    file.write_text(rendered(Rack(tmp_path)))
    ran = subprocess.run(
        ["dnsmasq", "--test", f"--conf-file={file}"],
        env={"PATH": "/usr/sbin:/usr/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    hosts = [line for line in file.read_text().splitlines() if line.startswith("dhcp-host=")]
    assert hosts == [
        "dhcp-host=02:1a:ee:00:00:01,127.92.128.1,node001",
        "dhcp-host=02:1a:ee:00:00:02,127.92.128.2,node002",
    ]


@needs_dnsmasq
def test_the_error_of_a_dnsmasq_that_does_not_start_has_the_reason(tmp_path: Path) -> None:
    """In its own words, and nothing of it stays."""
    file = tmp_path / "dnsmasq.conf"
    file.write_text("no-such-option\n")

    async def start() -> None:
        with pytest.raises(EnvironmentBrokenError, match="dnsmasq does not start: dnsmasq: bad option"):
            await Dnsmasq("mmtest").start(file)

    asyncio.run(start())


def test_a_machine_is_served_from_script_to_booted(tmp_path: Path) -> None:
    """Over HTTP: scripts, files in ranges, the look, its report, the overlay, and the word that it has booted."""

    async def talk() -> None:
        rack = Rack(tmp_path)
        boot = tmp_path / "boot"
        (boot / f"images/small/{IMAGE}/rootfs.tar.zst").write_bytes(b"0123456789")
        app = application(rack.boot_service, rack.files)
        async with TestClient(TestServer(app)) as client:
            assert "chain --autofree" in await (await client.get("/boot.ipxe")).text()
            token = await rack.deploying()
            script = await (await client.get("/boot/02-1A-ee-00-00-01.ipxe")).text()
            assert token not in script  # another boot, another token
            token = script.partition("clusterctl.token=")[2].split()[0]
            assert (await client.get(f"/t/{token}/overlay.tar")).status == 404
            assert "product_serial" in await (await client.get(f"/t/{token}/probe.sh")).text()
            answer = await client.post(f"/t/{token}/report", data=report_text())
            assert answer.status == 200
            path = (await answer.text()).partition("image=")[2].split()[0]
            part = await client.get(path, headers={"Range": "bytes=4-"})
            assert (part.status, await part.read()) == (206, b"456789")
            assert (await client.get(f"/t/{token}/overlay.tar")).status == 200
            assert [(await client.post(f"/t/{token}/{name}")).status for name in ("log", "done", "booted")] == [200] * 3
            assert (await client.get(f"/t/{token}/probe.sh")).status == 404
        await rack.close()

    asyncio.run(talk())


@pytest.mark.parametrize("shell", [("busybox", "ash"), ("dash",)])
def test_the_look_at_a_machine_is_understood(tmp_path: Path, shell: tuple[str, ...]) -> None:
    """Identity, ports, whole disks; no other block devices, and none without room."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    machine = Sysfs(tmp_path)
    machine.board(
        product_serial="LAB0001 ", product_uuid="4C4C", sys_vendor="Dell Inc.", product_name="XE", bios_version="1"
    )
    machine.port("eth0", "02:1a:ee:00:00:01")
    machine.port("lo", "00:00:00:00:00:00", real=False)
    machine.block("nvme0n1", 65536 * 2, device__serial="BOSS0001  ", wwid="nvme.1", device__model="QEMU NVMe Ctrl")
    machine.block("sda", 0, device__serial="EMPTY")
    machine.block("nvme1c0n1", 65536, hidden="1", device__serial="PATH")
    machine.block("loop0", 65536)
    (tmp_path / "sys/block").symlink_to(tmp_path / "sys/class/block")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name: x\nprocessor\t: 1\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal:        1000448 kB\nMemFree: 1 kB\n")
    with as_file(files("clusterctl_lab.emulators.maas.metal") / "commission.sh") as script:
        ran = subprocess.run(
            [*shell, str(script)],
            env={"PATH": os.environ["PATH"], "COMMISSION_ROOT": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.stderr == ""
    report = parse(ran.stdout)
    assert (report.serial, report.cpus, report.memory_mib) == ("LAB0001", 2, 977)
    assert report.macs == ("02:1a:ee:00:00:01",)
    (disk,) = report.disks
    assert (disk.path, disk.serial, disk.size, disk.readable) == ("/dev/nvme0n1", "BOSS0001", 131072, True)


def test_shellcheck_finds_nothing() -> None:
    """In what runs on machines."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    with as_file(files("clusterctl_lab.emulators.maas.metal") / "commission.sh") as script:
        ran = subprocess.run(["shellcheck", "--shell=dash", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
