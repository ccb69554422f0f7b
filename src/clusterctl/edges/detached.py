"""Processes of this controller that outlive the one that starts them, and signals to exactly those."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Collection, Sequence
from pathlib import Path

from clusterctl.edges.journal.claims import Owner
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError


def start(argv: Sequence[str], log: Path, without: Collection[str] = ()) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, without a terminal; its output is appended to `log`, mode 0600.

    It inherits our environment except for the variables `without`: the site's secrets may be there. It is reaped when
    it ends before us.
    """
    log.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        output = os.open(log, flags, 0o600)
    except OSError as error:
        remedy = "free the disk, or correct the folder's owner"
        raise EnvironmentBrokenError(f"cannot be written: {error.strerror}", where=str(log), remedy=remedy) from error
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={name: value for name, value in os.environ.items() if name not in without},
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(output)
    threading.Thread(target=process.wait, name="reaper", daemon=True).start()
    return process


def interrupt(owner: Owner) -> bool:
    """Send SIGINT to this very process; return False where it has ended.

    Raises `UsageError` where it runs on another machine, or belongs to another user.
    """
    if not owner.is_here:
        if owner.dead:
            return False
        raise UsageError("its process runs elsewhere", where=owner.host, remedy=f"repeat the command on {owner.host}")
    try:
        descriptor = os.pidfd_open(owner.pid)  # from here on it means one process, whatever its number is later
    except ProcessLookupError:
        return False
    try:
        if owner.dead:
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGINT)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        remedy = "repeat the command as the user who ordered the run"
        raise UsageError("its process belongs to another user", where=str(owner.pid), remedy=remedy) from error
    finally:
        os.close(descriptor)
    return True
