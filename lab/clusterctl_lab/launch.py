"""Starts a lab, from outside of it: what `clusterctl lab up` does."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import clusterctl
import clusterctl_lab
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError
from clusterctl_lab.image import RELEASE_VARIABLES
from clusterctl_lab.lock import LabLock, holder
from clusterctl_lab.messages import decode, raise_error
from clusterctl_lab.preflight import check_machine
from clusterctl_lab.removal import recorded, sweep
from clusterctl_lab.settings import LabPaths, LabSettings
from clusterctl_lab.site_directory import SiteDirectory

END_SECONDS = 30.0
LOG_LINES = 15
Progress = Callable[[str], None]


def up(settings: LabSettings, progress: Progress) -> None:
    """Start the lab and return when every service of it answers. Whatever fails, or Ctrl-C, leaves nothing behind.

    Raises `UsageError` if a lab of that name runs, or if another lab uses the network or the site directory.
    """
    check_machine(virtual=settings.virtual)
    paths = settings.paths
    SiteDirectory(Path(settings.site), settings.name).check()
    lock = LabLock.take(paths.lock)
    if lock is None:
        raise UsageError(
            f"a lab named {settings.name} is running, with the site directory {_site(paths)}",
            where=f"process {holder(paths.lock)}",
            remedy=f"clusterctl lab down --name {settings.name}; or give this one another --name and --subnet",
        )
    try:
        for leftover in sweep(paths):
            progress(f"removed what an earlier lab of this name left: {leftover}")
        _start(settings, lock, progress)
    except BaseException:
        sweep(paths)
        lock.remove()
        raise
    lock.close()


def _start(settings: LabSettings, lock: LabLock, progress: Progress) -> None:
    paths = settings.paths
    paths.run.mkdir(mode=0o700, parents=True)
    paths.state.mkdir(mode=0o755, parents=True)
    settings.save()
    with _daemon(settings, lock) as (process, messages):
        try:
            _wait_until_ready(process, messages, progress)
        except BaseException as error:
            _kill(process)
            if isinstance(error, EnvironmentBrokenError):
                progress(f"the last lines of its log:\n{_tail(paths.log)}")  # the log goes with the lab
            raise


def daemon_environment(code: str) -> dict[str, str]:
    """Return all that the daemon inherits of the environment: a path for programs, and which release its hosts run.
    `code`: the folders of the packages.
    """
    inherited = {name: os.environ[name] for name in RELEASE_VARIABLES if name in os.environ}
    return {**inherited, "PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8", "PYTHONPATH": code}


@contextlib.contextmanager
def _daemon(settings: LabSettings, lock: LabLock) -> Iterator[tuple[subprocess.Popen[bytes], BinaryIO]]:
    """The daemon's process, and the pipe on which it reports."""
    paths = settings.paths
    reading, writing = os.pipe()
    argv = (
        *(sys.executable, "-m", "clusterctl_lab.daemon", "--record", str(paths.record)),
        *("--ready-fd", str(writing), "--lock-fd", str(lock.descriptor)),
    )
    code = os.pathsep.join(str(Path(package.__path__[0]).parent) for package in (clusterctl, clusterctl_lab))
    with os.fdopen(reading, "rb") as messages:
        try:
            with _log_file(paths) as log:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=daemon_environment(code),
                    cwd="/",
                    pass_fds=(writing, lock.descriptor),
                    start_new_session=True,
                )
        finally:
            os.close(writing)
        yield process, messages


def _wait_until_ready(process: subprocess.Popen[bytes], messages: BinaryIO, progress: Progress) -> None:
    for line in messages:
        message = decode(line)
        raise_error(message)
        if "progress" in message:
            progress(message["progress"])
        if message.get("ready"):
            return
    raise EnvironmentBrokenError(
        f"the lab's daemon ended with {process.wait()} before it was ready",
        remedy="Correct what its log names, then start the lab again.",
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a daemon that is still starting; what it does not close itself, the sweep removes."""
    process.terminate()
    try:
        process.wait(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _site(paths: LabPaths) -> str:
    """Return the site directory of the lab that runs; a lab that only starts may have no record yet."""
    record = recorded(paths)
    return record.site if record is not None else "that it has not written yet"


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-LOG_LINES:])


def _log_file(paths: LabPaths) -> BinaryIO:
    return os.fdopen(os.open(paths.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
