"""What `clusterctl check` costs the controller for each host: its SSH session, and judging the answer.

    python -m benchmarks.check_cpu [--hosts 100]

One sshd on this machine stands for every host, and sends the same recorded answer of a healthy node. Counts the
processor time of this process alone, so that the load of the machine matters little; `check_hosts` runs the whole
operation over a lab.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.judge import HEALTHY_WORDS, recording
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.ssh.shell import ParamikoShell
from clusterctl.fleet.finding import Origin, Verdict
from clusterctl.ports import Deadline
from clusterctl_burnin.probe import parse_readings
from clusterctl_burnin.registry import CHECKS
from clusterctl_burnin.sweep import judge, sweep
from tests.burnin.kit import expected
from tests.edges.ssh.sshd import Sshd

WORKERS = 8  # sshd drops connections beyond ten that have not logged in (MaxStartups)
CONNECTED = Deadline.after(600.0, threading.Event())
CHECKS_WITHOUT_LOADS = tuple(check for check in CHECKS.values() if not check.idle_only)


def show(what: str, hosts: int, work: Callable[[int], object], workers: int) -> None:
    """Print the processor time of `work` for each host."""
    began, cpu = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(workers) as pool:
        done = list(pool.map(work, range(hosts)))
    cpu, wall = time.process_time() - cpu, time.monotonic() - began
    print(f"{what:32s} {1000 * cpu / len(done):6.2f} ms CPU per host   {wall:6.1f} s wall")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    hosts = parser.parse_args().hosts
    plan = sweep(CHECKS_WITHOUT_LOADS)
    answers = [json.dumps(recording(f"node{at:03d}", random.Random(at))["readings"]) for at in range(hosts)]
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}; {hosts} hosts, ", end="")
    print(f"{len(plan.stdin) / 1024:.0f} KiB to each and {len(answers[0]) / 1024:.0f} KiB from it")
    with tempfile.TemporaryDirectory() as folder, Sshd(Path(folder)) as server:
        (Path(folder) / "answer").write_text(answers[0])
        forced = f'command="cat >/dev/null; cat {folder}/answer"'
        (Path(folder) / "authorized").write_text(f"{forced} {server.public('user')}\n")
        known = server.address()

        def session(shell: ParamikoShell, at: int) -> int:
            host = replace(known, name=f"node{at:03d}")
            return len(shell.run(host, ("python3", "-"), plan.stdin, CONNECTED).value.stdout)

        with ParamikoShell(CLOCK, Origin.SIMULATED) as shell:
            show("session, with the connection", hosts, lambda at: session(shell, at), WORKERS)
            show("session, on a kept connection", hosts, lambda at: session(shell, at), WORKERS)
    readings = [parse_readings(answer) for answer in answers]
    show("reading the answer", hosts, lambda at: parse_readings(answers[at]), 1)
    wanted = replace(expected(), sent=datetime.now(UTC), received=datetime.now(UTC))
    judge(plan.checks, readings[0], wanted)
    found = [judge(plan.checks, one, wanted) for one in readings[:1]]
    print({verdict.value: sum(f.verdict is verdict for f in found[0].findings) for verdict in Verdict})
    readings = [parse_readings(answer) for answer in answers]
    show("judging it", hosts, lambda at: judge(plan.checks, readings[at], wanted), 1)


if __name__ == "__main__":
    main()
