"""Removes a lab, alive or killed, from outside of it: what `clusterctl lab down` does, and `up` before it begins."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import ClusterctlError, EnvironmentBrokenError, UsageError
from clusterctl_lab import control
from clusterctl_lab.hosts import sweep_leftovers
from clusterctl_lab.hosts.names import RUN, STATE
from clusterctl_lab.lock import LabLock, holder
from clusterctl_lab.settings import LabPaths, LabSettings
from clusterctl_lab.site_directory import SiteDirectory

END_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Removed:
    """What `down` found and removed, in words; `kept` are an operator's files in the site directory."""

    found: tuple[str, ...]
    kept: tuple[str, ...]


def down(name: str, *, keep_site: bool = False, site: Path | None = None) -> Removed:
    """Remove the lab, running or killed. Removing one that is not there finds nothing.

    Raises `UsageError` if `site` is given and the lab belongs to another site directory, as that of another checkout.
    """
    paths = LabPaths(name)
    check_owner(recorded(paths), site)
    lock = LabLock.take(paths.lock)
    found = []
    if lock is None:
        lock = _end(paths)
        found.append("the running lab")
    try:
        record = recorded(paths)
        found += sweep(paths)
        kept: tuple[str, ...] = ()
        if record is not None and not keep_site:
            kept = SiteDirectory(Path(record.site), name).remove()
            found.append(f"the lab's files in {record.site}")
    finally:
        lock.remove()
        for folder in (RUN, STATE):
            with contextlib.suppress(OSError):  # another lab's things are in it
                folder.rmdir()
    return Removed(tuple(found), kept)


def sweep(paths: LabPaths) -> tuple[str, ...]:
    """Remove all that a lab which no longer lives left on the machine, but for its site directory."""
    found = list(asyncio.run(sweep_leftovers(paths.name)))
    for folder in (paths.run, paths.state):
        if folder.exists():
            shutil.rmtree(folder)
            found.append(str(folder))
    return tuple(found)


def recorded(paths: LabPaths) -> LabSettings | None:
    """Return the settings of the lab; None if there is none, or if it was killed before it wrote them whole."""
    try:
        return LabSettings.load(paths.record)
    except (FileNotFoundError, PermissionError, json.JSONDecodeError, KeyError, TypeError):
        return None


def check_owner(record: LabSettings | None, site: Path | None) -> None:
    """Raise `UsageError` if the lab of `record` has another site directory than `site`; None: any."""
    if site is not None and record is not None and Path(record.site) != site:
        raise UsageError(
            f"lab {record.name} belongs to {record.site}, not to {site}",
            remedy=f"remove it there, or here without --site: clusterctl lab down --name {record.name}",
        )


def require_near(record: LabSettings | None, here: Path, site: Path | None) -> None:
    """Raise `UsageError` where the lab of `record`, which was not named, belongs elsewhere: to another checkout.

    `here` is the current directory: the lab's site directory is in it, or it is in the directory around that. `site` is
    the one that the environment names.
    """
    if record is None:
        return
    owner = Path(record.site)
    if owner == site or owner.is_relative_to(here) or here.is_relative_to(owner.parent):
        return
    raise UsageError(
        f"lab {record.name} belongs to {record.site}, and not to {here}",
        remedy=f"go there, or name the lab: --name {record.name}",
    )


def _end(paths: LabPaths) -> LabLock:
    """End a living lab, by asking, then by force; its lock is ours afterwards."""
    with contextlib.suppress(ClusterctlError):  # still starting, or hung: force follows
        control.ask(paths.control, paths.name, {"do": "down"})
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        pid = holder(paths.lock)
        if number is not None and pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        lock = _wait_for_lock(paths, pid)
        if lock is not None:
            return lock
    raise EnvironmentBrokenError(
        "the lab's daemon does not end",
        where=f"process {holder(paths.lock)}",
        remedy="Look what it waits for; the machine may have to be restarted.",
    )


def _wait_for_lock(paths: LabPaths, pid: int | None) -> LabLock | None:
    """The lock, once the process is gone; None after half a minute."""
    give_up = time.monotonic() + END_SECONDS
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            try:
                select.select([descriptor], [], [], END_SECONDS)
            finally:
                os.close(descriptor)
    lock = LabLock.take(paths.lock)
    while lock is None and time.monotonic() < give_up:
        time.sleep(0.05)  # an `up` that dies in this moment lets go of it
        lock = LabLock.take(paths.lock)
    return lock
