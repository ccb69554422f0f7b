"""Runs on a host: ends an aborted play, but lets a running package manager finish.

A killed package manager leaves packages half installed (`dpkg was interrupted`), which no later play can repair.
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
TIMEOUT_SECONDS = 600.0
POLL_SECONDS = 0.2


def end_without_package_managers(timeout_s: float = TIMEOUT_SECONDS) -> None:
    """Kill every descendant except package managers and their processes; wait for these, up to the timeout."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        pids = set(descendants(os.getpid()))
        spared = installing(pids)
        if not spared:
            return
        for pid in pids - spared:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)


def installing(pids: Container[int]) -> set[int]:
    """Return the package managers among `pids`, their descendants, and their ancestors up to Ansible."""
    parent_of, spared = parents(), set()
    for manager in (pid for pid in parent_of if pid in pids and _name(pid) in PACKAGE_MANAGERS):
        spared |= {manager, *descendants(manager)}
        above = parent_of[manager]
        while above in pids and not _is_ansible(above):
            spared.add(above)
            above = parent_of.get(above, 0)
    return spared


def _name(pid: int) -> str:
    """Return the name of a process; empty for an ended process or a zombie."""
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
