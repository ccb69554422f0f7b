"""The lab's files on an installed drive: written from outside, once, into a file system that stays sound."""

from __future__ import annotations

import asyncio
import shutil
import struct
import subprocess
import uuid
from pathlib import Path

import pytest

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.metal.disk_files import Lay, lay_once
from clusterctl_lab.metal.drives import BLOCK, GPT
from clusterctl_lab.metal.root_file_system import ROOT_OF_X86_64, RootFileSystem, root_file_system

TOOLS = ("debugfs", "e2fsck", "mkfs.ext4")
pytestmark = pytest.mark.skipif(
    not all(shutil.which(tool, path="/usr/sbin:/sbin:/usr/bin:/bin") for tool in TOOLS), reason="needs e2fsprogs"
)
SIZE, ROOT_OFFSET = 256 << 20, 33 << 20
ESP = uuid.UUID("c12a7328-f81f-11d2-ba4b-00a0c93ec93b")
LAY = Lay(
    {"/usr/lib/lab/tool": (b"#!/bin/sh\n", 0o755), "/etc/apt/sources.list": (b"", 0o644), "/etc/a b": (b"x", 0o600)},
    {"/etc/systemd/wants/lab.service": "/etc/systemd/lab.service"},
)


def run(*argv: str) -> str:
    argv = (shutil.which(argv[0], path="/usr/sbin:/sbin:/usr/bin:/bin") or argv[0], *argv[1:])
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """A drive as the deployer leaves it: an ESP, and one ext4 with an OS that has a source list of its own."""
    path = tmp_path / "BOSS0001.raw"
    with path.open("wb") as file:
        file.truncate(SIZE)
        file.seek(BLOCK)
        file.write(GPT.ljust(72, b"\0") + struct.pack("<QII", 2, 128, 128))
        file.seek(2 * BLOCK)
        for kind, first in ((ESP, 2048), (ROOT_OF_X86_64, ROOT_OFFSET // BLOCK)):
            file.write((kind.bytes_le + bytes(16) + struct.pack("<Q", first)).ljust(128, b"\0"))
    make(path)
    return path


def make(drive: Path) -> None:
    """An OS's files, written as `mkfs.ext4 -d` does."""
    tree = drive.with_name("tree")
    (tree / "etc/apt").mkdir(mode=0o755, parents=True, exist_ok=True)
    (tree / "etc/apt/sources.list").write_text("deb http://deb.example bookworm main\n")
    (tree / "etc/hostname").write_text("node001\n")
    size = (SIZE - 2 * ROOT_OFFSET) // 1024
    run("mkfs.ext4", "-q", "-F", "-d", str(tree), "-E", f"offset={ROOT_OFFSET}", str(drive), f"{size}k")


def found(drive: Path) -> RootFileSystem:
    there = root_file_system(drive)
    assert there is not None
    return there


def inside(drive: Path, request: str) -> str:
    return run("debugfs", "-R", request, f"{drive}?offset={found(drive).offset}")


def lay(drive: Path, what: Lay = LAY) -> bool:
    return asyncio.run(lay_once("test", drive, what, drive.parent))


def test_files_are_there_with_their_modes_and_the_rest_is_as_it_was(drive: Path) -> None:
    """Content, mode, owner, link; what had the same name is replaced, everything else kept, and the file system sound."""
    assert lay(drive)
    assert inside(drive, "cat /usr/lib/lab/tool") == "#!/bin/sh\n"
    assert "Mode:  0755" in inside(drive, "stat /usr/lib/lab/tool")
    assert inside(drive, 'cat "/etc/a b"') == "x"
    assert "Mode:  0600" in inside(drive, 'stat "/etc/a b"')
    assert inside(drive, "cat /etc/apt/sources.list") == ""
    assert '"/etc/systemd/lab.service"' in inside(drive, "stat /etc/systemd/wants/lab.service")
    assert inside(drive, "cat /etc/hostname") == "node001\n"
    run("e2fsck", "-fn", f"{drive}?offset={found(drive).offset}")


def test_once_for_each_file_system(drive: Path) -> None:
    """What the OS made of the files since is its own; a reinstallation writes them again."""
    assert lay(drive)
    assert not lay(drive)
    make(drive)
    assert lay(drive)


def test_what_was_not_unmounted_is_left_alone(drive: Path) -> None:
    """A journal that waits for recovery means an OS that has run, or an installation that was cut off."""
    run("debugfs", "-w", "-R", "feature needs_recovery", f"{drive}?offset={found(drive).offset}")
    assert not found(drive).clean
    assert not lay(drive)
    assert inside(drive, "cat /etc/apt/sources.list").startswith("deb ")


def test_a_drive_without_an_os_is_none(drive: Path, tmp_path: Path) -> None:
    """No drive, an empty one, and one whose partition holds no file system yet."""
    assert root_file_system(tmp_path / "none.raw") is None
    empty = tmp_path / "empty.raw"
    empty.write_bytes(bytes(4096))
    assert root_file_system(empty) is None
    with drive.open("r+b") as file:
        file.seek(found(drive).offset)
        file.write(bytes(4096))
    assert root_file_system(drive) is None
    assert not lay(drive)


def test_what_cannot_be_written_is_reported(drive: Path) -> None:
    """A file in the place of a folder: the tool's words, and no success; the next try starts from the beginning."""
    wrong = Lay({"/etc/hostname/below": (b"", 0o644)})
    with pytest.raises(EdgeError, match="does not take the lab's files"):
        lay(drive, wrong)
    assert lay(drive)
