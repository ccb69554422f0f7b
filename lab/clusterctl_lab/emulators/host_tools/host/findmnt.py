"""findmnt: `--json --output COLUMNS /`, as findmnt of util-linux 2.38 prints it; the host's own root is an overlay.

The real tool answers any other call; on a host with a pool, its file system is added to the list of all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterctl_lab.emulators.host_tools.host.drives import root
from clusterctl_lab.emulators.host_tools.host.facts import load
from clusterctl_lab.emulators.host_tools.host.zpool import MOUNTPOINT, POOL

REAL = "/usr/bin/findmnt"
_ALL = ["--json", "--list", "--output", "TARGET,SOURCE,FSTYPE,OPTIONS"]
_COLUMNS = frozenset({"TARGET", "SOURCE", "FSTYPE", "OPTIONS", "MAJ:MIN"})


def main(argv: Sequence[str]) -> int:
    fits = len(argv) == 4 and (*argv[:2], argv[3]) == ("--json", "--output", "/")
    if list(argv) == _ALL and load().pool_degraded:
        return _with_pool(argv)
    columns = argv[2].split(",") if fits else []
    if not columns or not set(columns) <= _COLUMNS:
        os.execv(REAL, [REAL, *argv])  # noqa: S606 — another program's name and arguments, no shell
    device = root()
    reported = {"TARGET": "/", "SOURCE": device.path, "FSTYPE": "ext4", "OPTIONS": _options(), "MAJ:MIN": device.number}
    json.dump({"filesystems": [{column.lower(): reported[column] for column in columns}]}, sys.stdout, indent=3)
    sys.stdout.write("\n")
    return 0


def _with_pool(argv: Sequence[str]) -> int:
    """Print what the real tool prints, and the pool's file system."""
    ran = subprocess.run([REAL, *argv], stdout=subprocess.PIPE, check=False)
    listed = json.loads(ran.stdout)
    row = {"target": MOUNTPOINT, "source": POOL, "fstype": "zfs", "options": "rw,relatime,xattr,noacl"}
    listed["filesystems"].append(row)
    json.dump(listed, sys.stdout, indent=3)
    sys.stdout.write("\n")
    return ran.returncode


def _options() -> str:
    """Return the mount options of the root, writable or not, as the kernel reports them (proc_pid_mounts(5))."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    writable = [mount[3].split(",")[0] for mount in mounts if mount[1] == "/"]
    return f"{writable[-1] if writable else 'rw'},relatime"
