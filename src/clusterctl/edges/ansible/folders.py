"""Where runs have their private folders, and how those of dead runs are told from living ones: by their lock.

A run locks its folder (flock(2) on the folder itself) for as long as its process lives; the kernel unlocks it however
that ends. So a folder that can be locked belongs to nobody any more. Where the filesystem has no such locks (NFS)
nothing is swept.
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
"""Another's, or (the others) no lock that this filesystem knows: NFS locks only what is open for writing."""


def places(work_dir: Path, fallback: Path | None = None) -> tuple[Path, Path]:
    """Where run folders may lie: below `work_dir`, or below a folder of ours in the system's temporary folder."""
    return work_dir, fallback or Path(tempfile.gettempdir()) / f"clusterctl-{os.geteuid()}"


def private_folder(parent: Path) -> tuple[Path, int]:
    """A fresh run folder in `parent`, and the descriptor that keeps it locked; what dead runs left there is removed."""
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _require_ours(parent)
    with _locked(parent):
        _sweep(parent)
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        return root, _lock(root)


def sweep(work_dir: Path) -> None:
    """Remove what dead runs have left wherever run folders of `work_dir` may lie: it may hold secrets."""
    for parent in places(work_dir):
        if parent.is_dir():
            _require_ours(parent)
            with _locked(parent):
                _sweep(parent)


def discard(folder: Path) -> None:
    """Remove a run folder. What cannot be removed is said, not raised: it must not hide how the run itself ended, and
    the next one sweeps again.
    """
    shutil.rmtree(folder, onerror=_left)


def _left(_: object, path: str, trouble: tuple[type[BaseException], BaseException, object]) -> None:
    if not isinstance(trouble[1], FileNotFoundError):  # its supervisor removes the same folder
        log.warning("cannot remove %s, which may hold secrets: %s", path, trouble[1])


def _require_ours(parent: Path) -> None:
    """The name of our folder in the temporary one is known: somebody may have made it, or a link, before us."""
    status = parent.lstat()
    trusted = {os.geteuid(), parent.parent.stat().st_uid}
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in trusted:
        raise EnvironmentBrokenError(
            "is no folder of the user who runs clusterctl", where=str(parent), remedy="remove it, or set TMPDIR"
        )


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            descriptor = _open(folder)
        except (FileNotFoundError, NotADirectoryError):  # its own run has just removed it; not one of ours
            continue
        try:
            if _locks(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB):
                discard(folder)
        finally:
            os.close(descriptor)


@contextmanager
def _locked(parent: Path) -> Iterator[None]:
    """Between the making of a folder and its locking nobody sweeps."""
    descriptor = _lock(parent)
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(folder: Path) -> int:
    """A descriptor that holds the folder's lock, where there are locks, until it is closed."""
    descriptor = _open(folder)
    _locks(descriptor, fcntl.LOCK_EX)
    return descriptor


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


def _locks(descriptor: int, how: int) -> bool:
    """False where another holds the lock, or the filesystem has none."""
    try:
        fcntl.flock(descriptor, how)
    except OSError as error:
        if error.errno in NOT_LOCKED:
            return False
        raise
    return True
