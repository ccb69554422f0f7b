"""On a host: a play that is broken off lets packages that are being installed be installed.

A package manager that is killed leaves packages half installed (`dpkg was interrupted`), which no later play can mend.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Container
from pathlib import Path

from clusterctl.edges.ansible.supervisor import descendants, parents

PACKAGE_MANAGERS = frozenset({"apt", "apt-get", "dpkg"})
PATIENCE_SECONDS = 600.0
LOOK_SECONDS = 0.2


def let_packages_be_installed(patience_s: float = PATIENCE_SECONDS) -> None:
    """Kill every descendant but package managers and what belongs to them; wait for those, at most so long."""
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        pids = set(descendants(os.getpid()))
        spared = installing(pids)
        if not spared:
            return
        for pid in pids - spared:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)


def installing(pids: Container[int]) -> set[int]:
    """Those of `pids` that install packages, what they started, and what waits for them short of Ansible itself."""
    parent_of, spared = parents(), set()
    for manager in (pid for pid in parent_of if pid in pids and _name(pid) in PACKAGE_MANAGERS):
        spared |= {manager, *descendants(manager)}
        above = parent_of[manager]
        while above in pids and not _is_ansible(above):
            spared.add(above)
            above = parent_of.get(above, 0)
    return spared


def _name(pid: int) -> str:
    """Of a process; empty where it has ended, or is a zombie that nobody waits for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    name, _, rest = state.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] == "Z" else name


def _is_ansible(pid: int) -> bool:
    try:
        return b"ansible-playbook" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
