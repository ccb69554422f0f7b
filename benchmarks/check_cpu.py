"""What `clusterctl check` costs the controller for each host, counted as processor time of this process alone.

    python -m benchmarks.check_cpu [--hosts 100] [--answer-s 0] [--at-once 256]

One sshd on this machine stands for every host. It sends the recorded answer of a healthy node with eight GPUs,
`--answer-s` seconds after it was asked: a real host takes about ten. `--at-once`: hosts that are asked at the same
time. All the rest is the product: site, journal,
sessions, checks. `check_hosts` runs the same over a lab, with which this machine is busy, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.judge import SERIAL, recording
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.ssh.shell import ParamikoShell
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Observed, Origin
from clusterctl.operations import check
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, HostAddress, Ran
from tests.cli.nights import SilentOutside
from tests.edges.site.ready import write_ready_site
from tests.edges.ssh.sshd import Sshd
from tests.events import advances, new_event
from tests.steps.fakes import inventory

SKU = "dell-xe9680-h100"
RECORDED = 1767323045.0
"""When the answer was recorded, by its own clock."""


@dataclass(frozen=True)
class OneServer:
    """Meets `Shell`: every host is the one server, each on a connection of its own. It answers with the host's serial
    and with its time.
    """

    shell: ParamikoShell
    known: HostAddress

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        ran = self.shell.run(replace(self.known, name=host.name), argv, stdin, deadline)
        own = ran.value.stdout.replace(SERIAL, f"{SERIAL}{int(host.name.removeprefix('node'))}")
        own = own.replace(f'"started": {RECORDED},', f'"started": {time.time()},', 1)
        return replace(ran, value=replace(ran.value, stdout=own))


def described(number: int) -> list[NewEvent]:
    """Return the events of a gold node."""
    name = f"node{number:03d}"
    seen = {"inventory": inventory_to_data(inventory(f"{SERIAL}{number}")), "sku": SKU, "root_disk": f"D-{number}"}
    return [
        new_event("node", name, Kind.NODE_DESCRIBED, {"name": name, "bmc": f"10.0.0.{number}", "rack": "A01"}),
        new_event("node", name, Kind.NODE_IDENTIFIED, seen),
        new_event("node", name, Kind.HOST_KEY_PINNED, {"public": "ssh-ed25519 AAAA"}),
        new_event("node", name, Kind.NODE_ADDRESSED, {"address": f"10.0.1.{number}"}),
        *advances(name, "gold"),
    ]


def site_of(folder: Path, hosts: int, at_once: int) -> SiteContext:
    """Return a site of so many gold nodes, at most 250."""
    write_ready_site(folder)
    with (folder / "site.yml").open("a") as file:
        file.write(f"parallel: {{checks: {at_once}}}\n")
    rows = "".join(f"node{at:03d},10.0.0.{at}\n" for at in range(1, hosts + 1))
    (folder / "bmcs.csv").write_text(f"name,bmc_address\n{rows}")
    context = open_site(folder)
    for number in range(1, hosts + 1):
        context.journal.append(described(number))
    return context


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--answer-s", type=float, default=0.0)
    parser.add_argument("--at-once", type=int, default=256)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site, keys = Path(folder) / "site", Path(folder) / "sshd"
        site.mkdir()
        keys.mkdir()
        answer = keys / "answer"
        answer.write_text(json.dumps(recording("node001", random.Random(1))["readings"]))
        slow = f"sleep {options.answer_s}; " if options.answer_s else ""
        command = f"{shutil.which('cat')} >/dev/null; {slow}cat {answer}"
        server = Sshd(keys, options="MaxStartups 300\n", command=command)
        print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}; {options.hosts} hosts")
        with server, closing(site_of(site, options.hosts, options.at_once).journal):
            for what in ("first check", "second check"):
                context = open_site(site)
                with closing(context.journal), ParamikoShell(CLOCK, Origin.SIMULATED) as shell:
                    hosts = OneServer(shell, server.address())
                    asked = replace(context, connect=lambda given, _, h=hosts: SilentOutside(given, shell=h))
                    wall, cpu = time.monotonic(), time.process_time()
                    result = check.run(asked, check.CheckRequest(nodes=("*",)), Control())
                cpu, wall = time.process_time() - cpu, time.monotonic() - wall
                each = 1000 * cpu / len(result.nodes)
                print(f"{what:14s} {each:6.2f} ms CPU per host   {wall:6.1f} s wall   {len(result.nodes)} nodes")


if __name__ == "__main__":
    main()
