"""Open files and memory against how many nodes are worked on at once."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, not_measured, ok, warn

FILES_BASE = 128
FILES_PER_NODE = 6
"""A connection, its socket pair, and three pipes of the process behind it."""
MEMORY_BASE_MIB = 300
MEMORY_PER_FORK_MIB = 60
"""Resident memory of one of Ansible's processes, measured: 45 to 60 MiB."""
UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Need:
    """How much is worked on at once: nodes in the widest step, and Ansible's processes."""

    nodes: int
    forks: int


def need(site: Site | None) -> Need:
    if site is None:
        return Need(64, 25)
    batch = site.settings.batch
    widest = max(batch.discover, batch.install, batch.configure, batch.burnin)
    return Need(min(widest, len(site.nodes)), min(site.settings.configure.forks, len(site.nodes)))


def check_files(site: Site | None) -> Diagnosis:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return judge_files(UNLIMITED if soft == resource.RLIM_INFINITY else soft, need(site))


def judge_files(limit: int, need: Need) -> Diagnosis:
    wanted = FILES_BASE + FILES_PER_NODE * need.nodes
    if limit < wanted:
        message = f"{limit} files may be open, {need.nodes} nodes at once need about {wanted}"
        return warn("open_files", message, f"ulimit -n {wanted}, or smaller batches in the site file")
    allowed = "any number of" if limit >= UNLIMITED else str(limit)
    return ok("open_files", f"{allowed} files may be open, about {wanted} are needed")


def check_memory(site: Site | None) -> Diagnosis:
    return judge_memory(_available_mib(), need(site))


def judge_memory(available_mib: int | None, need: Need) -> Diagnosis:
    if available_mib is None:
        return not_measured("memory", "/proc/meminfo does not tell it")
    wanted = MEMORY_BASE_MIB + MEMORY_PER_FORK_MIB * need.forks
    if available_mib < wanted:
        message = f"{available_mib} MiB are available, {need.forks} of Ansible's processes need about {wanted}"
        return warn("memory", message, "lower configure.forks, or free memory")
    return ok("memory", f"{available_mib} MiB available, about {wanted} are needed")


def _available_mib() -> int | None:
    for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return None
