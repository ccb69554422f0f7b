"""The private folders of runs. A lock distinguishes the folders of dead runs from those of running ones.

A run locks its folder (flock(2) on the folder itself) while its process lives; the kernel removes the lock at its end.
So a folder that can be locked belongs to a dead run. Where the file system has no such locks (NFS) nothing is swept.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError

log = logging.getLogger(__name__)

PREFIX = "r"
NOT_LOCKED = frozenset({errno.EWOULDBLOCK, errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL})
"""Another process has the lock, or the file system has no such locks: NFS locks only files open for writing."""


def places(work_dir: Path, fallback: Path | None = None) -> tuple[Path, Path]:
    """Return the possible parents of run folders: `work_dir`, and our folder in the system's temporary folder."""
    return work_dir, fallback or Path(tempfile.gettempdir()) / f"clusterctl-{os.geteuid()}"


def private_folder(parent: Path) -> tuple[Path, int]:
    """Make a run folder; return it and the descriptor that holds its lock. Also sweep the folders of dead runs."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_ours(parent)
    with _locked(parent):
        _sweep(parent)
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        return root, _lock(root)


def sweep(work_dir: Path) -> None:
    """Remove the folders of dead runs, which may hold secrets."""
    for parent in places(work_dir):
        if parent.is_dir():
            _require_ours(parent)
            with _locked(parent):
                _sweep(parent)


def discard(folder: Path) -> None:
    """Remove a run folder. Errors are logged, not raised: they must not hide the result of the run."""
    shutil.rmtree(folder, onerror=_log_error)


def _log_error(_: object, path: str, error: tuple[type[BaseException], BaseException, object]) -> None:
    if not isinstance(error[1], FileNotFoundError):  # the supervisor removes the same folder
        log.warning("cannot remove %s, which may hold secrets: %s", path, error[1])


def _require_ours(parent: Path) -> None:
    """Raise if another user made the folder, or a link: the name of our temporary folder is predictable."""
    status = parent.lstat()
    trusted = {os.geteuid(), parent.parent.stat().st_uid}
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in trusted:
        raise EnvironmentBrokenError(
            "does not belong to the user of clusterctl", where=str(parent), remedy="remove it, or set TMPDIR"
        )


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            descriptor = _open(folder)
        except (FileNotFoundError, NotADirectoryError):  # its run has just removed it; or it is no run folder
            continue
        try:
            if _locks(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                discard(folder)
        finally:
            os.close(descriptor)


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Prevent sweeping between the making and the locking of a folder."""
    descriptor = _lock(parent)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """Return a descriptor that holds the folder's lock, if the file system has locks."""
    descriptor = _open(folder)
    _locks(descriptor, fcntl.LOCK_EX)
    return descriptor


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _locks(descriptor: int, how: int) -> bool:
    """Return False if another process holds the lock, or the file system has no locks."""
    try:
        fcntl.flock(descriptor, how)
    except OSError as error:
        if error.errno in NOT_LOCKED:
            return False
        raise
    return True
