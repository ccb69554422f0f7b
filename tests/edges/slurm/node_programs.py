"""The programs of the role node_check in a folder of a test: the file that a site builds, and Slurm's own calls of it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.node_check.build import build
from clusterctl_burnin.node_check.program import Content, NodeFacts, SkuFacts
from tests.edges.slurm.cluster import PATH
from tests.fleet.skus import H100_X8
from tests.lab_data import lab_limits
from tests.paths import ROOT

GOLDEN = ROOT / "tests/edges/ansible/roles/node_check/default/golden"
FREE_GIB = {"good": 0.0, "bad": 1e9}
"""By SKU, how much room the check `disk_space` wants."""


def install(folder: Path) -> None:
    """Write prolog, epilog and health check as the role does; a slow machine gets more time than a job would wait."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("scontrol", "squeue"):
        _program(tools / name, f'SLURM_CONF={folder}/slurm.conf exec {shutil.which(name, path=PATH)} "$@"')
    command = f"{sys.executable} -I -S {folder}/clusterctl-node"
    more = f"--squeue {tools}/squeue --report {folder}/$SLURMD_NODENAME.txt --slurm-seconds 100"
    for name in ("clusterctl-prolog", "clusterctl-epilog", "clusterctl-health"):
        text = (GOLDEN / f"{name}.j2").read_text()
        text = text.replace("/usr/bin/python3 /usr/local/sbin/clusterctl-node", command)
        text = text.replace("PATH=/usr/local/sbin", f"PATH={tools}:/usr/local/sbin")
        text = text.replace("/usr/bin/scontrol", f"{tools}/scontrol {more}")
        text = text.replace("/var/lib/prometheus/node-exporter", f"{folder}")
        text = text.replace("--kill-after=1 10", "300").replace("timeout 58", "timeout 300")
        text = text.replace(" prolog --", " prolog --seconds 200 --").replace(" health --", " health --seconds 200 --")
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)


def write_node_file(folder: Path, nodes: Collection[str], bad: Collection[str] = ()) -> None:
    """Write the file of these nodes; `bad` ones should have more room on their disks than any machine has."""
    content = Content(
        version=1,
        built="test",
        checks=("disk_space",),
        left_out=(),
        nodes={name: NodeFacts(serial="S", sku="bad" if name in bad else "good") for name in nodes},
        skus={name: SkuFacts(sku=replace(H100_X8, name=name), limits=_limits(gib)) for name, gib in FREE_GIB.items()},
        requirements=HostRequirements(),
        known_lines=KnownLines(),
    )
    part = folder / "clusterctl-node.part"
    part.write_bytes(build(content))
    part.replace(folder / "clusterctl-node")


def _limits(gib: float) -> Limits:
    """Return the lab's limits with another figure for free room, and time for a slow machine."""
    found = lab_limits()
    room = replace(found["disk_free_min"], value=gib)
    return replace(found, limits={**found.limits, "disk_free_min": room}, patience=12.0)


def _program(file: Path, command: str) -> None:
    file.write_text(f"#!/bin/sh\n{command}\n")
    file.chmod(0o755)
