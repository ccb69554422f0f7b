"""What a killed lab left behind, found by the lab's name and removed: cgroups with their processes, launchers, the
pods' namespaces, the uplink, run files, raised limits. Mounts and the hosts' wires live in namespaces, which end with
the processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import shutil
import signal
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.hosts.cgroups import LabCgroup
from clusterctl_lab.hosts.names import MARKER, RUN, STATE, LabNames
from clusterctl_lab.hosts.pods import remove_namespaces
from clusterctl_lab.hosts.quota import CpuQuota
from clusterctl_lab.hosts.switch import remove_uplink
from clusterctl_lab.hosts.sysctls import restore_limits

DEATH_SECONDS = 10.0
LIMITS = RUN / "limits.json"


async def sweep_leftovers(lab: str) -> tuple[str, ...]:
    """Remove everything that runs of the lab's hosts and return what there was; never another lab's, and no disks.

    The lab must not be running: the caller knows by its daemon's lock.
    """
    names = LabNames(lab)
    found = []
    if await asyncio.to_thread(LabCgroup.of(names).destroy_all):
        found.append("hosts and their cgroups")
    await asyncio.to_thread(CpuQuota.of(names).remove)
    if await asyncio.to_thread(_kill_marked, lab):
        found.append("processes that were building hosts")
    found += [f"network namespace {name}" for name in await remove_namespaces(names)]
    if await remove_uplink(names):
        found.append(f"interface {names.uplink}")
    if names.run_dir.exists():
        await asyncio.to_thread(shutil.rmtree, names.run_dir)
        found.append(str(names.run_dir))
    if await asyncio.to_thread(restore_limits, LIMITS, lambda: any(RUN.glob("*/hosts"))):
        found.append("raised kernel limits")
    for folder in (names.run_dir.parent, RUN):
        with contextlib.suppress(OSError):  # absent, or another lab's things are in it
            folder.rmdir()
    return tuple(found)


def erase_disks(state_dir: Path) -> None:
    """Remove what is installed on the hosts of the lab whose folder `state_dir` is; they must not run."""
    disks = state_dir / "hosts"
    if disks.exists():
        shutil.rmtree(disks)
    if state_dir.exists() and not any(state_dir.iterdir()):
        state_dir.rmdir()


def default_state_dir(lab: str) -> Path:
    """Where a lab keeps what survives its daemon."""
    return STATE / LabNames(lab).lab


def _kill_marked(lab: str) -> bool:
    """Kill helpers that had not joined a cgroup yet; ours (this process and its threads) are not marked."""
    marker = f"{MARKER}={lab}".encode()
    found = False
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _is_marked(entry, marker):
            found |= _kill(int(entry.name))
    return found


def _is_marked(entry: Path, marker: bytes) -> bool:
    try:
        return marker in (entry / "environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it ended meanwhile
    except PermissionError:
        return False  # hardened against root itself: none of our shells


def _kill(pid: int) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        if not select.select([descriptor], [], [], DEATH_SECONDS)[0]:
            raise EnvironmentBrokenError(
                f"process {pid} does not die",
                where=f"/proc/{pid}",
                remedy="Restart the machine: it hangs in its kernel.",
            )
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True
