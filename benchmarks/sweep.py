"""What a sweep costs the controller: all of the burn-in's checks on every host of a lab, over SSH.

    sudo python -m benchmarks.sweep [--hosts 100]

Prints wall time and the controller's own processor time per host (user + system of this process, which does nothing
else), for a sweep that opens its connections, for the next one that finds them open, and for OpenSSH's `ssh` that sends
the same to the same hosts, as many at once; and for `python -c pass` of the same minute. The hosts run on the same
machine, so the wall time is theirs as much as the controller's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from clusterctl.edges.ansible.workspace import ssh_options
from clusterctl.ports import HostAddress
from clusterctl_burnin.probe import argv_for
from lab.tests.lab_kit import running_lab
from tests.e2e.sweeping import Sweeper, hosts_of, sweeper

NAME, SUBNET = "benchsw", "10.159.0.0/16"


def cpu_s() -> float:
    """User + system seconds of this process and of its children that have ended."""
    usages = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def show(what: str, work: Callable[[], list[str]], hosts: int) -> None:
    """Run `work`, which returns its failures, and print what it took."""
    wall, cpu = time.monotonic(), cpu_s()
    failures = work()
    wall, cpu = time.monotonic() - wall, cpu_s() - cpu
    print(f"{what:20s} {wall:6.1f} s   {1000 * cpu / hosts:6.1f} ms CPU per host   {len(failures)} failed sessions")
    for failure in failures:
        print(f"  {failure}")


def by_openssh(sweep: Sweeper, known_hosts: Path, host: HostAddress) -> str:
    """What went wrong when `ssh` sent the sweep's program to the host; empty if nothing did."""
    options = ssh_options(known_hosts, BatchMode="yes")
    command = argv_for(host.user, privileged=True)
    argv = ["ssh", *options, "-i", host.key_file, f"{host.user}@{host.address}", *command]
    ran = subprocess.run(argv, input=sweep.plan.stdin, capture_output=True, check=False)
    return "" if ran.returncode == 0 else f"{host.name}: exit status {ran.returncode}: {ran.stderr[-300:]!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_lab(NAME, SUBNET, Path(folder), "--hosts", str(options.hosts), "--installed") as lab,
        sweeper() as sweep,
    ):
        machines = json.loads(lab("status", "--json"))["machines"]
        hosts = hosts_of(lab.site, {machine["name"]: machine["address"] for machine in machines})
        print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}; {len(hosts)} hosts")
        before = cpu_s()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        print(f"python -c pass       {1000 * (cpu_s() - before):6.1f} ms CPU")

        def failures() -> list[str]:
            return [f"{session.host}: {session.failure}" for session in sweep(hosts) if session.failure]

        show("first sweep", failures, len(hosts))
        show("connections open", failures, len(hosts))
        openssh = partial(by_openssh, sweep, lab.site / "known_hosts")
        show("OpenSSH", lambda: list(filter(None, sweep.pool.map(openssh, hosts))), len(hosts))


if __name__ == "__main__":
    main()
