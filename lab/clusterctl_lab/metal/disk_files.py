"""Lays the lab's files on an installed drive from outside, before its OS boots for the first time.

What was installed stays as it was; what is added is what hosts in namespaces get through an overlay. `debugfs` of
e2fsprogs writes into the file system without mounting it. It exits 0 whatever became of its commands: what it complains
of is what counts.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from clusterctl.fleet.errors import EdgeError
from clusterctl_lab.hosts.command import Ran, run
from clusterctl_lab.metal.root_file_system import RootFileSystem, root_file_system

SECONDS = 120.0
_BANNER = b"debugfs "


@dataclass(frozen=True, slots=True)
class Lay:
    """`files`: absolute path → content and mode; `links`: absolute path → where it leads."""

    files: Mapping[str, tuple[bytes, int]] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.files, *self.links)


async def lay_once(lab: str, drive: Path, lay: Lay, folder: Path) -> bool:
    """Write `lay` into the drive's root file system, once for each that is made on it; True where it was written now.

    `folder` is the lab's own, of this machine: which file system has its files already stands there. One that was not
    unmounted is left alone: it has booted before, or its installation did not end. Raises `EdgeError` with the tool's
    words.
    """
    found, record = root_file_system(drive), folder / "laid-on"
    if found is None or not found.clean or (record.exists() and record.read_text() == found.uuid):
        return False
    await _lay(lab, drive, found, lay, folder / "laying")
    record.write_text(found.uuid)
    return True


async def _lay(lab: str, drive: Path, found: RootFileSystem, lay: Lay, scratch: Path) -> None:
    device = f"{drive}?offset={found.offset}"
    await asyncio.to_thread(_prepare, lay, scratch)
    try:
        await _debugfs(lab, device, scratch / "room")  # what is not there cannot be removed: its complaints are none
        ran = await _debugfs(lab, device, scratch / "files")
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch)
    complaints = [line for line in ran.stderr.splitlines() if line.strip() and not line.startswith(_BANNER)]
    if ran.rc != 0 or complaints:
        words = b" | ".join(complaints[:3]).decode(errors="replace")
        raise EdgeError(f"does not take the lab's files: {words}", where=str(drive), remedy="Install it again.")


def _prepare(lay: Lay, scratch: Path) -> None:
    """Fresh: what a killed lab left is removed."""
    if scratch.exists():
        shutil.rmtree(scratch)
    scratch.mkdir(mode=0o700)
    (scratch / "room").write_text(_lines(_make_room(lay.paths)))
    (scratch / "files").write_text(_lines(_writes(lay, scratch)))


async def _debugfs(lab: str, device: str, commands: Path) -> Ran:
    return await run(lab, ("debugfs", "-w", "-f", str(commands), device), timeout_s=SECONDS)


def _make_room(paths: Iterable[str]) -> Iterator[str]:
    """The folders of all paths, outermost first, and nothing of these names in them."""
    wanted = list(paths)
    folders = {parent for path in wanted for parent in PurePosixPath(path).parents if parent.name}
    yield from (f'mkdir "{folder}"' for folder in sorted(folders, key=lambda folder: (len(folder.parts), folder)))
    yield from (f'rm "{path}"' for path in wanted)


def _writes(lay: Lay, scratch: Path) -> Iterator[str]:
    """What makes the files; debugfs takes content, mode and owner from files of this machine."""
    for number, (path, (content, mode)) in enumerate(lay.files.items()):
        source = scratch / f"file{number}"
        source.write_bytes(content)
        source.chmod(mode)
        yield f'write "{source}" "{path}"'
    yield from (f'symlink "{path}" "{target}"' for path, target in lay.links.items())


def _lines(commands: Iterable[str]) -> str:
    return "".join(f"{command}\n" for command in commands)
