"""The controller's own disk: its errors as messages, and files that are written whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import tempfile
import time
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
LOCK_S, LOCK_POLL_S = 30.0, 0.02
"""So long a writer waits for another one's lock, as for another writer of the journal."""
PARTS = 64
"""So many write one file at once before they wait."""


@contextmanager
def disk_explained(what: str, where: Path) -> Iterator[None]:
    """Turn an `OSError` within into an `EnvironmentBrokenError`: `WHERE: WHAT: No space left on device`."""
    try:
        yield
    except OSError as error:
        full = "make room on that disk, then run the same command again: it goes on from here"
        remedy = full if error.errno in FULL else "make it writable for the user of clusterctl"
        if isinstance(error, OccupiedError):
            remedy = "look for a clusterctl that was stopped (state T in ps), and continue or end it"
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


class OccupiedError(OSError):
    """Another process holds the lock of a file for too long, as one does that was stopped."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(errno.EDEADLK, f"another process has held its lock for {wait_s:g} seconds")


def lock(descriptor: int, wait_s: float = LOCK_S) -> None:
    """Lock the open file (flock(2)) until it is closed. Raises `OccupiedError` where another has it for so long."""
    until = time.monotonic() + wait_s
    while not _is_locked(descriptor):
        if time.monotonic() > until:
            raise OccupiedError(wait_s)
        time.sleep(LOCK_POLL_S)


def write_whole(file: Path, content: bytes, *, mode: int, over: bool, wait_s: float = LOCK_S) -> None:
    """Write `file` whole or not at all, whenever we are killed; without `over` a file that is there is left alone.

    What is written first is a part, whose name all writers know: what a dead writer left there is overwritten by the
    next one. Writers that replace the file take turns by the part's lock. The others wait for no writer, which may have
    been stopped: each has a part of its own, and the first one to be in place counts. Raises `OccupiedError` where
    another writer has the file for `wait_s`.
    """
    if over:
        with _part_of(file, mode, 1, wait_s) as part:
            _replace(file, content, *part)
    elif not file.exists():
        with _part_of(file, mode, PARTS, wait_s) as part:
            _place(file, content, *part)


def _replace(file: Path, content: bytes, part: Path, descriptor: int) -> None:
    done = False
    try:
        _fill(descriptor, content)
        part.replace(file)
        done = True
    finally:
        if not done:
            part.unlink()  # after the replacement the name may be the next writer's


def _place(file: Path, content: bytes, part: Path, descriptor: int) -> None:
    try:
        _fill(descriptor, content)
        _link(part, file)
    finally:
        part.unlink(missing_ok=True)


def _link(part: Path, file: Path) -> None:
    """Give the part the file's name unless it is there."""
    try:
        file.hardlink_to(part)
    except FileExistsError:
        pass
    except OSError:  # a file system without hard links
        if not file.exists():
            part.replace(file)


@contextmanager
def _part_of(file: Path, mode: int, most: int, wait_s: float) -> Iterator[tuple[Path, int]]:
    """Yield a part file, open and locked: the first of so many that no other writer has.

    Its name is predictable: another account's file or link is refused.
    """
    until = time.monotonic() + wait_s
    for number in itertools.cycle(range(most)):
        part = file.with_name(f".{file.name}.{number}.part" if number else f".{file.name}.part")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            if _is_locked(descriptor) and _is_at(part, descriptor) and _is_ours(descriptor, part, file):
                yield part, descriptor
                return
        finally:
            os.close(descriptor)
        if time.monotonic() > until:
            raise OccupiedError(wait_s)
        if number == most - 1:
            time.sleep(LOCK_POLL_S)


def _is_ours(descriptor: int, part: Path, file: Path) -> bool:
    """Return False for the file itself, whose writer was killed before it removed the part's name; remove that then.

    Raises `PermissionError` for a file or link that another account may have made.
    """
    found = os.fstat(descriptor)
    if found.st_nlink == 2 and found.st_uid == os.geteuid() and _is_at(file, descriptor):
        part.unlink()
        return False
    if found.st_uid != os.geteuid() or found.st_nlink > 1:
        raise PermissionError(errno.EPERM, f"{part.name} is in its way, which another account has made")
    return True


def _is_locked(descriptor: int) -> bool:
    """Return whether we have the lock now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether the open file has this name: another writer may have finished while we waited."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _fill(descriptor: int, content: bytes) -> None:
    os.ftruncate(descriptor, 0)
    _write_all(descriptor, content)
    os.fsync(descriptor)


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
