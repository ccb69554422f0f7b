"""The requirements of a rehearsal lab on its machine, for `clusterctl lab check`.

The kernel's features are tried in temporary namespaces, so that nothing of the trial remains.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from clusterctl.fleet.diagnosis import Diagnosis, broken, not_measured, ok
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.hosts.cgroups import MOUNTS, mount_point
from clusterctl_lab.preflight import check_machine

SECONDS = 5.0
OLDEST_KERNEL = (5, 14)
"""The first with `cgroup.kill`."""
NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--fork", "--uts", "--ipc")
FEATURES: Mapping[str, str] = {
    "namespaces": "true",
    "virtual cables (veth)": "ip link add name probe0 type veth peer name probe1",
    "bridges": "ip link add name probe0 type bridge",
    "shaping (tc tbf)": "tc qdisc add dev lo root tbf rate 1mbit burst 10k latency 1ms",
    "overlayfs": "mount -t tmpfs t /tmp && cd /tmp && mkdir a b c d && mount -t overlay o -o "
    "lowerdir=a,upperdir=b,workdir=c d",
}
"""Feature → a shell command that needs it."""


def check_tools() -> Diagnosis:
    """Root, and the programs that a lab calls."""
    try:
        check_machine()
    except EnvironmentBrokenError as error:
        return broken("lab_tools", error.message, error.remedy)
    return ok("lab_tools", "all programs that a lab calls are there")


def check_kernel() -> Diagnosis:
    """Each feature by using it; as root only, for a lab needs root."""
    if os.geteuid() != 0:
        return not_measured("lab_kernel", "only root can try", "run it through sudo")
    try:
        mount_point(MOUNTS.read_text(encoding="utf-8"))
    except EnvironmentBrokenError as error:
        return broken("lab_kernel", error.message, error.remedy)
    missing = [feature for feature, command in FEATURES.items() if not _works(command)]
    return judge_kernel(os.uname().release, missing)


def judge_kernel(release: str, missing: Sequence[str]) -> Diagnosis:
    """`release` as uname(2) has it; `missing`: the features that did not work."""
    if missing:
        message = f"this kernel does not allow {', '.join(missing)}"
        return broken("lab_kernel", message, "run the lab on a plain Debian or Ubuntu kernel, not in a container")
    major, minor, *_ = (int(part) for part in release.split("-", maxsplit=1)[0].split(".")[:2])
    if (major, minor) < OLDEST_KERNEL:
        wanted = ".".join(map(str, OLDEST_KERNEL))
        return broken("lab_kernel", f"Linux {release} has no cgroup.kill", f"use Linux {wanted} or newer")
    return ok("lab_kernel", f"cgroup v2, {', '.join(FEATURES)}")


def _works(command: str) -> bool:
    try:
        ran = subprocess.run(
            [*NAMESPACES, "sh", "-c", command],
            check=False,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0
