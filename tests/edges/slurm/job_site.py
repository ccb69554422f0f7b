"""A site whose nodes are those of the tests' Slurm: each host is this machine, with a kernel log of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UnreachableError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Observed
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.site_adapters import SiteAdapters
from clusterctl.ports import Deadline, HostAddress, Ran
from tests.cli.nights import Silence
from tests.edges.site.ready import write_ready_site
from tests.events import new_event
from tests.steps.fakes import identified

NODES = ("c1", "c2", "c3")
LOST_GPU = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=python3, GPU has fallen off the bus."
JOURNALCTL = """#!/bin/sh
cat {log} 2>/dev/null
exit 0
"""
"""Prints the kernel log of one host, whatever it is asked for."""
PY_SPY = """#!/usr/bin/python3
import json, os, sys
name = os.path.basename(os.readlink(f"/proc/{sys.argv[-1]}/exe"))
assert name.startswith("python"), name
frame = {"name": "wait", "filename": "/x/train.py", "line": 12}
thread = {"pid": int(sys.argv[-1]), "thread_id": 1, "thread_name": "MainThread", "active": True, "owns_gil": True}
print(json.dumps([{**thread, "frames": [frame]}]))
"""
"""Prints one frame in py-spy's form; fails for a process that is no interpreter."""
PATIENCE_S = 600.0


def eventually(look: Callable[[], bool]) -> None:
    """Return once `look` holds; fail after minutes."""
    until = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < until
        time.sleep(0.2)


@dataclass
class LocalHosts:
    """Meets `Shell`: runs each command on this machine. `silent` hosts give no session."""

    folder: Path
    silent: set[str] = field(default_factory=set)

    def kernel_log(self, host: str) -> Path:
        return self.folder / host / "kernel.log"

    def prepare(self, host: str) -> None:
        tools = self.folder / host / "bin"
        tools.mkdir(parents=True)
        programs = {"journalctl": JOURNALCTL.format(log=self.kernel_log(host)), "py-spy": PY_SPY}
        for name, text in programs.items():
            (tools / name).write_text(text)
            (tools / name).chmod(0o755)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        if host.name in self.silent:
            raise UnreachableError("no SSH: [Errno 113] No route to host", where=host.name)
        path = f"{self.folder / host.name / 'bin'}:{os.environ['PATH']}"
        words = [word for word in argv if word not in ("sudo", "-n")]
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(words, check=False, input=stdin, capture_output=True, env=environment, timeout=600)
        return Observed(Ran(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"), 0.1))


@dataclass
class JobSite:
    context: SiteContext
    hosts: LocalHosts
    folder: Path


class LocalAdapters(SiteAdapters):
    """The site's own adapters, but for hosts and BMCs: no BMC answers."""

    def __init__(self, site: Site, access: Access, hosts: LocalHosts) -> None:
        super().__init__(site, access)
        self._hosts = hosts

    @cached_property
    def shell(self) -> LocalHosts:  # type: ignore[override]
        return self._hosts

    @cached_property
    def bmcs(self) -> Silence:  # type: ignore[override]
        return Silence()


@contextmanager
def job_site(folder: Path, nodes: Sequence[str] = NODES) -> Iterator[JobSite]:
    """Gold nodes that the tests' Slurm has."""
    site = folder / "site"
    write_ready_site(site)
    rows = [f"{name},10.0.0.{at},SN-{name},A01,{4 * at}" for at, name in enumerate(nodes, start=1)]
    (site / "bmcs.csv").write_text("\n".join(["name,bmc_address,serial,rack,unit", *rows, ""]))
    with (site / "site.yml").open("a") as file:
        file.write("\nscheduler: {kind: slurm}\n")
    hosts = LocalHosts(folder / "hosts")
    context = open_site(site)
    for at, name in enumerate(nodes, start=1):
        hosts.prepare(name)
        identified(context.journal, name, f"SN-{name}", "gold")
        context.journal.append(
            [
                new_event("node", f"id-{name}", Kind.NODE_ADDRESSED, {"address": f"10.0.1.{at}"}),
                new_event("node", f"id-{name}", Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}),
            ]
        )
    connected = replace(context, connect=lambda site, access: LocalAdapters(site, access, hosts))
    try:
        yield JobSite(connected, hosts, folder)
    finally:
        context.journal.close()
