"""The controller's own disk: its errors as messages, and files that are written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
IMPOSSIBLE = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL}
)
"""What a path causes that no right and no space can make possible: a folder above it is missing, or is a file."""
ROOM_BYTES = 1 << 16


@contextmanager
def disk_explained(what: str, where: Path) -> Iterator[None]:
    """Turn an `OSError` within into an `EnvironmentBrokenError`: `WHERE: WHAT: No space left on device`."""
    try:
        yield
    except OSError as error:
        full = "make room on that disk, then run the same command again: it goes on from here"
        remedy = full if error.errno in FULL else "make it writable for the user of clusterctl"
        raise EnvironmentBrokenError(f"{what}: {error.strerror}", where=str(where), remedy=remedy) from None


@contextmanager
def named_path_explained(what: str, where: Path) -> Iterator[None]:
    """Do as `disk_explained` for a path that the operator named: raise `UsageError` where it is an impossible one."""
    with disk_explained(what, where):
        try:
            yield
        except OSError as error:
            if error.errno not in IMPOSSIBLE:
                raise
            remedy = "name another path: each folder above it must exist, and be a folder"
            raise UsageError(f"{what}: {error.strerror}", where=str(where), remedy=remedy) from None


def require_room(folder: Path) -> None:
    """Raise `EnvironmentBrokenError` where not even a small file can be written to `folder` any more."""
    with (
        disk_explained("there is no room to work in", folder),
        tempfile.TemporaryFile(dir=folder, buffering=0) as probe,
    ):
        probe.write(bytes(ROOM_BYTES))


def free_bytes(folder: Path) -> int:
    """Return what the user of this process can still write to the disk of `folder`."""
    with disk_explained("its free space is unknown", folder):
        found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def write_whole(file: Path, content: bytes, *, mode: int, over: bool) -> None:
    """Write `file` whole or not at all, whenever we are killed; without `over` a file that is there is left alone.

    The part that is written first has one name for all writers, which take turns by its lock (flock(2)): what a dead
    writer left there is overwritten by the next one.
    """
    with _part_of(file, mode) as (part, descriptor):
        done = False
        try:
            if over or not file.exists():
                os.ftruncate(descriptor, 0)
                _write_all(descriptor, content)
                os.fsync(descriptor)
                part.replace(file)
                done = True
        finally:
            if not done:
                part.unlink()  # after the replacement the name may be the next writer's


@contextmanager
def _part_of(file: Path, mode: int) -> Iterator[tuple[Path, int]]:
    """Yield the part file, open and locked. Its name is predictable: another account's file or link is refused."""
    part = file.with_name(f".{file.name}.part")
    while True:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            _require_ours(descriptor, part)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_at(part, descriptor):
                yield part, descriptor
                return
        finally:
            os.close(descriptor)


def _require_ours(descriptor: int, part: Path) -> None:
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or found.st_nlink > 1:
        raise PermissionError(errno.EPERM, f"{part.name} is in its way, which another account has made")


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether the open file still has this name: another writer may have finished while we waited."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def write_once(file: Path, content: bytes) -> None:
    """Write whole or not at all, mode 0600 in a folder of mode 0700, and never over an existing file."""
    with disk_explained("cannot be written", file):
        _make_private(file.parent)
        write_whole(file, content, mode=0o600, over=False)


def write_over(file: Path, content: bytes) -> None:
    """Write the file in the place of an existing one."""
    with disk_explained("cannot be written", file):
        _make_private(file.parent)
        write_whole(file, content, mode=0o600, over=True)


def _make_private(folder: Path) -> None:
    """Create the folder and all missing ones above it: `mkdir(parents=True)` would open those to others."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
