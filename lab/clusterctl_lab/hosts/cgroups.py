"""One cgroup per host, so that everything of it can be found and killed as a whole.

Works on the unified hierarchy (`/sys/fs/cgroup`) and on the hybrid one (`/sys/fs/cgroup/unified`); it needs no
controllers, only `cgroup.kill` (Linux 5.14). Blocking, but short: callers in asyncio use a thread.
"""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.hosts.names import LabNames

MOUNTS = Path("/proc/self/mounts")
EMPTY_SECONDS = 20.0
LAUNCHERS = "launchers"
"""Name of the cgroup that holds the switch and each host's launcher; no machine may be called so."""


def mount_point(mounts: str) -> Path:
    """Where cgroup2 is mounted, by the text of /proc/self/mounts."""
    for line in mounts.splitlines():
        _, target, kind, options, *_ = line.split()
        if kind == "cgroup2" and "ro" not in options.split(","):
            return Path(target)
    raise EnvironmentBrokenError(
        "no writable cgroup2 hierarchy is mounted",
        where=str(MOUNTS),
        remedy="Boot with systemd.unified_cgroup_hierarchy=1, or run the lab outside a container.",
    )


@dataclass(frozen=True, slots=True)
class LabCgroup:
    """The cgroups of one lab: `path` holds one per host, and `launchers`."""

    path: Path

    @classmethod
    def of(cls, names: LabNames) -> LabCgroup:
        return cls(mount_point(MOUNTS.read_text()) / names.cgroup)

    def create(self, name: str) -> Path:
        """A cgroup for processes to join by writing to its `cgroup.procs`."""
        path = self.path / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def destroy(self, name: str) -> None:
        """Kill whatever is in it and remove it; nothing happens where there is none."""
        _destroy(self.path / name)

    def destroy_all(self) -> bool:
        """The whole lab at once; True where there was something."""
        if not self.path.exists():
            return False
        _destroy(self.path)
        parent = self.path.parent
        if not any(entry.is_dir() for entry in parent.iterdir()):
            parent.rmdir()
        return True


def _destroy(path: Path) -> None:
    if not path.exists():
        return
    (path / "cgroup.kill").write_text("1")
    _wait_until_empty(path)
    for folder, _, _ in os.walk(path, topdown=False):
        os.rmdir(folder)  # noqa: PTH106 — os.walk yields strings


def _wait_until_empty(path: Path) -> None:
    """The kernel wakes a poll on `cgroup.events` whenever it changes."""
    deadline = time.monotonic() + EMPTY_SECONDS
    with (path / "cgroup.events").open() as events:
        poller = select.poll()
        poller.register(events, select.POLLPRI)
        while "populated 1" in events.read():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise EnvironmentBrokenError(
                    f"processes do not die within {EMPTY_SECONDS:.0f} s of SIGKILL",
                    where=str(path),
                    remedy=f"Look at the processes in {path}/cgroup.procs; they hang in the kernel.",
                )
            poller.poll(remaining * 1000)
            events.seek(0)
