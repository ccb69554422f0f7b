"""What `clusterctl check` costs the controller: the whole operation over every host of a lab.

    sudo python -m benchmarks.check_hosts [--hosts 100]

The lab's machines are discovered; their addresses and host keys are written into the journal as by an install. Prints
wall time and the processor time of this process per host, for a first check, which opens the connections, and for a
second one. The hosts run on the same machine: the wall time is theirs, too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from benchmarks.sweep import cpu_s
from clusterctl.fleet.event import node_event
from clusterctl.fleet.payloads.node import HostKeyPinned, NodeAddressed
from clusterctl.operations import check
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.operation import Control
from lab.tests.lab_kit import running_lab

NAME, SUBNET = "benchck", "10.158.0.0/16"


def address(context: SiteContext, known_hosts: Path, addresses: dict[str, str]) -> None:
    """Write the hosts' addresses and keys into the journal."""
    keys = dict(line.split(" ", 1) for line in known_hosts.read_text().splitlines())
    for node in context.named(sorted(addresses)):
        found = addresses[node.name]
        events = [
            node_event(node.id, HostKeyPinned(public=keys[found])),
            node_event(node.id, NodeAddressed(address=found)),
        ]
        context.journal.append(events)


def show(context: SiteContext, what: str) -> None:
    """Check all nodes, and print what that took and what it found."""
    wall, cpu = time.monotonic(), cpu_s()
    result = check.run(context, check.CheckRequest(nodes=("*",)), Control())
    wall, cpu = time.monotonic() - wall, cpu_s() - cpu
    verdicts = dict(Counter(node.verdict.value for node in result.nodes))
    print(f"{what:14s} {wall:6.1f} s   {1000 * cpu / len(result.nodes):6.1f} ms CPU per host   {verdicts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_lab(NAME, SUBNET, Path(folder), "--hosts", str(options.hosts), "--installed") as lab,
    ):
        clusterctl = [sys.executable, "-m", "clusterctl_cli.main", "discover", "--yes", "--site", str(lab.site)]
        subprocess.run(clusterctl, check=True, stdout=subprocess.DEVNULL)
        machines = json.loads(lab("status", "--json"))["machines"]
        context = open_site(lab.site)
        with closing(context.journal):
            address(context, lab.site / "known_hosts", {machine["name"]: machine["address"] for machine in machines})
            print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}; {len(machines)} hosts")
            show(context, "first check")
            show(context, "second check")


if __name__ == "__main__":
    main()
