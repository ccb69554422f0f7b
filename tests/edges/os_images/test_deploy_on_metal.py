"""A virtual machine is written by the deployer and boots from its disk: real firmware, kernel, image and boot loader."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from clusterctl.edges.os_images import BootFolder, OsImage
from clusterctl.edges.os_images.initramfs import script
from clusterctl_lab.metal.os_image import ensure_os_image
from tests.edges.os_images.interface_kit import TOKEN, Installer, serving
from tests.edges.os_images.machine_kit import GATEWAY, OVMF, Drive, VirtualMachine
from tests.ports import reserve_port

BOOT = Path("/var/cache/clusterctl-lab/boot")
TOOLS = ("qemu-system-x86_64", "mmdebstrap", "zstd", "ssh")
missing = [tool for tool in TOOLS if shutil.which(tool) is None] + [str(OVMF)] * (not OVMF.is_dir())
pytestmark = [
    pytest.mark.lab,
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0 or bool(missing), reason=f"needs root and {missing or 'nothing else'}"),
    pytest.mark.timeout(3600),
]
GIB = 1 << 30
DEPLOY_SECONDS = 1500.0
BOOT_SECONDS = 900.0


@pytest.fixture(scope="module")
def image() -> OsImage:
    """Built once for all tests and labs of this machine."""
    return ensure_os_image(print)


@pytest.fixture
def machine(tmp_path: Path) -> VirtualMachine:
    """Its root disk lies between two of the same size with something on them."""
    drives = tuple(Drive.made(tmp_path, name, 4 * GIB, name.encode() * 4096) for name in ("DATA-1", "ROOT-1", "DATA-2"))
    return VirtualMachine(tmp_path, "SN0001", drives, reserve_port("127.0.0.1"))


def installer(image: OsImage, overlay: bytes = b"", serial: str = "SN0001") -> Installer:
    return Installer(BOOT, image.path_below_files, image.digest, script("probe.sh"), serial, "ROOT-1", overlay)


def deploy(machine: VirtualMachine, port: int) -> int:
    """Boot the deployer and wait until the machine restarts or switches itself off; QEMU's exit code."""
    deployer = BootFolder(BOOT).deployer()
    arguments = f"clusterctl.server=http://{GATEWAY}:{port} clusterctl.token={TOKEN} ip=dhcp quiet mitigations=off"
    process = machine.boot_deployer(
        BOOT / deployer.kernel_path, BOOT / deployer.initrd_path, f"{arguments} console=ttyS0"
    )
    try:
        return process.wait(DEPLOY_SECONDS)
    finally:
        process.kill()
        process.wait()


def content(drive: Drive) -> str:
    """Of the parts of the file that are written."""
    digest = hashlib.sha256()
    with drive.path.open("rb") as file:
        position = 0
        while (position := _next_data(file.fileno(), position)) < drive.size:
            file.seek(position)
            block = file.read(65536)
            if block.strip(b"\0"):
                digest.update(position.to_bytes(8, "big") + block)
            position += len(block)
    return digest.hexdigest()


def _next_data(descriptor: int, position: int) -> int:
    try:
        return os.lseek(descriptor, position, os.SEEK_DATA) // 65536 * 65536
    except OSError:
        return 1 << 62


def test_a_machine_is_written_and_boots(image: OsImage, machine: VirtualMachine, tmp_path: Path) -> None:
    """The named disk and no other; over a stream that breaks; and sshd answers with the key that was posted."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    there = installer(image, _overlay(key.with_suffix(".pub").read_bytes()))
    there.broken_off = 1
    before = [content(machine.drives[number]) for number in (0, 2)]
    with serving(there) as port:
        deploy(machine, port)
    assert there.last("done") is not None, f"{there.words()}\n{machine.console[-4000:]}"
    assert [content(machine.drives[number]) for number in (0, 2)] == before
    host_key = there.last("host-key")
    assert host_key is not None
    known = tmp_path / "known_hosts"
    known.write_text(f"[127.0.0.1]:{machine.ssh_port} {host_key.decode()}")
    process = machine.boot_disk()
    try:
        reported = _ssh(machine, key, known, "hostname; findmnt -no SOURCE /; stat -c %s /etc/machine-id; date +%s")
    finally:
        process.kill()
        process.wait()
    name, root, machine_id_size, clock = reported.split()
    assert (name, machine_id_size) == ("node-1", "33")
    assert root == "/dev/nvme1n1p2"
    assert abs(int(clock) - time.time()) < 300


def test_a_machine_that_is_refused_is_not_touched(image: OsImage, machine: VirtualMachine) -> None:
    """The answer 409: it reports that, switches itself off, and has written nothing anywhere."""
    there = installer(image, serial="ANOTHER")
    before = [content(drive) for drive in machine.drives]
    with serving(there) as port:
        deploy(machine, port)
    assert there.last("report") is not None, machine.console[-4000:]
    assert "REFUSED: that is another machine" in machine.console
    assert [what for what, _ in there.messages if what not in {"progress", "report"}] == []
    assert [content(drive) for drive in machine.drives] == before


def test_a_spoilt_image_does_not_boot(image: OsImage, machine: VirtualMachine) -> None:
    """A wrong checksum is reported as a failure with the log, and the firmware finds no boot loader on the disk."""
    there = installer(image, _overlay(b"no key\n"))
    there.spoilt = True
    with serving(there) as port:
        deploy(machine, port)
    failed = there.last("failed")
    assert failed is not None, machine.console[-4000:]
    assert b"the image arrived with the checksum" in failed
    assert there.last("log")
    assert there.last("done") is None
    with machine.drives[1].path.open("rb") as disk:
        boot_partition = disk.read(514 << 20)
    assert b"BOOTX64 EFI" not in boot_partition


def _overlay(public_key: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        entry = tarfile.TarInfo("root/.ssh/authorized_keys")
        entry.size, entry.mode = len(public_key), 0o600
        tar.addfile(entry, io.BytesIO(public_key))
    return stream.getvalue()


def _ssh(machine: VirtualMachine, key: Path, known: Path, command: str) -> str:
    """What it prints; tried until the host is up, with the host key that is known and no other."""
    options = (f"UserKnownHostsFile={known}", "StrictHostKeyChecking=yes", "BatchMode=yes", "ConnectTimeout=20")
    argv = ["ssh", "-F", "none", "-i", str(key), "-p", str(machine.ssh_port)]
    argv += [part for option in options for part in ("-o", option)]
    give_up = time.monotonic() + BOOT_SECONDS
    while True:
        result = subprocess.run([*argv, "root@127.0.0.1", command], capture_output=True, text=True, check=False)
        if result.returncode != 255:
            assert result.returncode == 0, result.stderr
            return result.stdout
        assert "HOST IDENTIFICATION HAS CHANGED" not in result.stderr
        assert time.monotonic() < give_up, f"{result.stderr}\n{machine.console[-4000:]}"
        time.sleep(1)
