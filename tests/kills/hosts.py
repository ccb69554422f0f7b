"""What runs on a lab's hosts for a user actor logged in: the children of sshd, by their cgroup."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.hosts.cgroups import MOUNTS, mount_point
from clusterctl_lab.hosts.names import LabNames
from tests.processes import command_of


def sessions(lab: str) -> Iterator[tuple[str, str]]:
    """Host and command of each process that a login has started and that lives."""
    root = mount_point(MOUNTS.read_text()) / LabNames(lab).cgroup
    for procs in root.glob("*/system.slice/ssh.service/**/cgroup.procs"):
        host = procs.relative_to(root).parts[0]
        for pid in procs.read_text().split():
            command = command_of(int(pid))
            if command and "[listener]" not in command:
                yield host, command
