"""Room for the journal and for what runs leave: bytes and inodes where the site keeps its state."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok, warn

NAME = "disk"
MIB = 1024 * 1024
LEAST_MIB = 200
PER_NODE_MIB = 4
"""A node's journal after ten bootstraps: 200 events and their evidence, 0.35 MiB measured, tenfold."""
LEAST_INODES = 1000


@dataclass(frozen=True, slots=True)
class Seen:
    """Free for us where `where` is; `inodes` is None where the file system has no fixed number of them."""

    where: str
    free_mib: int
    inodes: int | None
    writable: bool


def check(site: Site) -> Diagnosis:
    return judge(look(site.folder), len(site.nodes))


def look(folder: Path) -> Seen:
    state = folder / "state"
    place = state if state.is_dir() else folder
    told = os.statvfs(place)
    inodes = told.f_favail if told.f_files else None
    return Seen(str(place), told.f_bavail * told.f_frsize // MIB, inodes, os.access(place, os.W_OK | os.X_OK))


def judge(seen: Seen, nodes: int) -> Diagnosis:
    free = f"{seen.free_mib} MiB free in {seen.where}"
    if not seen.writable:
        return broken(NAME, f"{seen.where} is not writable", "run as the user who owns it, or mend its owner and mode")
    if seen.free_mib < LEAST_MIB:
        return broken(NAME, f"only {free}", f"make room: at least {LEAST_MIB} MiB")
    if seen.inodes is not None and seen.inodes < LEAST_INODES:
        return broken(NAME, f"only {seen.inodes} inodes free in {seen.where}", "remove files that nobody needs")
    wanted = LEAST_MIB + PER_NODE_MIB * nodes
    if seen.free_mib < wanted:
        return warn(NAME, f"{free}; {nodes} nodes will want about {wanted} in time", "make room before a long campaign")
    return ok(NAME, free)
