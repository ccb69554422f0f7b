"""The lock of a lab: an flock that the daemon inherits from `lab up`. The lab lives exactly as long as it is held.

A pid file would lie after `kill -9` or once the pid is used again; the kernel drops a lock with its last holder.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError


class LabLock:
    """Held until `close`, or until the last process that inherited `descriptor` ends."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> LabLock | None:
        """Return the lock; None while another process holds it."""
        try:
            while True:
                try:
                    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
                except FileNotFoundError:
                    continue  # the last lab removed the folder meanwhile
                except FileExistsError:  # mkdir found the folder, and it was removed before it looked what it is
                    if path.parent.exists() and not path.parent.is_dir():
                        raise
                    continue
                if not _locked(descriptor):
                    os.close(descriptor)
                    return None
                if _is(path, descriptor):
                    return cls(path, descriptor)
                os.close(descriptor)  # its last holder removed it meanwhile
        except PermissionError as error:
            raise EnvironmentBrokenError(
                "the lab needs root", where=str(path), remedy="Run the command through sudo."
            ) from error

    def write_holder(self, pid: int) -> None:
        """Write the process that holds the lock into its file, for operators and for `holder`."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, f"{pid}\n".encode(), 0)

    def close(self) -> None:
        """Release the lock in this process; a process that inherited it still holds it."""
        os.close(self.descriptor)

    def remove(self) -> None:
        """Release the lock and remove its file."""
        self.path.unlink(missing_ok=True)
        self.close()


def holder(path: Path) -> int | None:
    """Return the process that wrote itself into the lock's file; only meaningful while the lock is held."""
    text = path.read_text(encoding="ascii").strip() if path.exists() else ""
    return int(text) if text else None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
