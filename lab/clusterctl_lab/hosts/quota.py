"""A limit on the processor time of a whole host, by the kernel's cpu controller.

On the unified hierarchy it is a setting of the host's own cgroup. On the hybrid one the controller has a hierarchy of
its own: there the host gets a cgroup when it gets a limit, and all its processes move into it.
Blocking, but short: callers in asyncio use a thread.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.hosts.cgroups import MOUNTS, LabCgroup
from clusterctl_lab.hosts.names import LabNames

PERIOD_US = 100_000
PASSES = 50
"""Processes fork while they are moved: so many looks at most until none is left outside."""


def legacy_mount(mounts: str) -> Path | None:
    """Where a cpu hierarchy of its own is mounted, by the text of /proc/self/mounts; None where there is none."""
    for line in mounts.splitlines():
        _, target, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Path(target)
    return None


@dataclass(frozen=True, slots=True)
class CpuQuota:
    """`cgroup`: the lab's on the unified hierarchy; `legacy`: the lab's on the cpu hierarchy, where that is another."""

    cgroup: Path
    legacy: Path | None

    @classmethod
    def of(cls, names: LabNames) -> CpuQuota:
        mount = legacy_mount(MOUNTS.read_text())
        return cls(LabCgroup.of(names).path, mount / names.cgroup if mount else None)

    def limit(self, host: str, percent: int | None) -> None:
        """All processes of `host` together get `percent` of one core; None: as much as they can."""
        if self.legacy is None:
            self._limit_unified(host, percent)
            return
        own = self.legacy / host
        if percent is None and not own.exists():
            return
        own.mkdir(parents=True, exist_ok=True)
        (own / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (own / "cpu.cfs_quota_us").write_text("-1" if percent is None else str(percent * PERIOD_US // 100))
        if percent is not None:
            _move(self.cgroup / host, own)

    def forget(self, host: str) -> None:
        """The host has ended: what was made for it goes."""
        if self.legacy is not None:
            with contextlib.suppress(FileNotFoundError):  # it never had a limit
                (self.legacy / host).rmdir()

    def remove(self) -> None:
        """The lab has ended: whatever is left of it here goes; its processes must be dead."""
        if self.legacy is None or not self.legacy.exists():
            return
        for folder, _, _ in os.walk(self.legacy, topdown=False):
            os.rmdir(folder)  # noqa: PTH106 — os.walk yields strings
        with contextlib.suppress(OSError):  # another lab's hosts are in it
            self.legacy.parent.rmdir()

    def _limit_unified(self, host: str, percent: int | None) -> None:
        lab = self.cgroup
        for folder in (lab.parent.parent, lab.parent, lab):
            (folder / "cgroup.subtree_control").write_text("+cpu")
        quota = "max" if percent is None else str(percent * PERIOD_US // 100)
        (lab / host / "cpu.max").write_text(f"{quota} {PERIOD_US}")


def _move(source: Path, target: Path) -> None:
    """Every process below `source` joins `target`; children of a moved one are born there."""
    for _ in range(PASSES):
        inside = set((target / "cgroup.procs").read_text().split())
        outside = [pid for pid in _processes(source) if pid not in inside]
        if not outside:
            return
        for pid in outside:
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                (target / "cgroup.procs").write_text(pid)
    raise EnvironmentBrokenError(
        "its processes fork faster than they can be moved", where=str(source), remedy="Power it off and on."
    )


def _processes(cgroup: Path) -> Iterable[str]:
    return (pid for file in cgroup.rglob("cgroup.procs") for pid in file.read_text().split())
