"""A rolling driver change over a pool of lab hosts while Slurm keeps them at work: one story, `make soak` runs it.

Real: Slurm with accounting (slurmd on each host), Ansible, apt, the reboots of the hosts, the journal. The driver is a package of the lab and
loads no module: a file stands in for the one that the kernel has loaded, so that the role requests the reboot that a driver change needs.
`CLUSTERCTL_MAINTAIN_HOSTS` is the number of nodes, 24 unless set, 6 at least; one more host runs slurmctld and slurmdbd.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from clusterctl.fleet.acts import Act
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.node import ActIntended
from clusterctl.operations.context import open_site
from lab.tests.lab_kit import eventually, needs_lab, running_lab
from tests.edges.slurm.cluster import missing
from tests.edges.slurm.lab_pool import LabPool, lab_pool
from tests.paths import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_lab, pytest.mark.timeout(6 * 3600)]

HOSTS = int(os.environ.get("CLUSTERCTL_MAINTAIN_HOSTS", "24"))
NODES = tuple(f"node{number:03}" for number in range(1, HOSTS + 1))
CONTROLLER = f"node{HOSTS + 1:03}"
BROKEN = NODES[6 if HOSTS >= 12 else 2]
OLD, NEW = "570.148.08", "575.57.08"
RACK, REBOOTS = 4, 2
HOURS = 3600.0
REASON = "clusterctl:maintain:driver"
PLAN = f"""\
name: driver
reason: driver {NEW}
nodes: [{", ".join(NODES)}]
change:
  variables: {{nvidia_driver_version: "{NEW}"}}
waves: {{canary: 2, by: rack, size: 1}}
stop_percent: 10
drain_minutes: 60
"""
SUITE = """\
version: 1
name: brief
extends: nightly
checks: [gpu_count, gpu_ecc, nvidia_driver]
loads: [stress_ng]
node_seconds: {stress_ng: 2}
"""
LOADED = f"""\
set -e
mount -t tmpfs none /sys/module
mkdir /sys/module/nvidia
echo {OLD} > /sys/module/nvidia/version
"""
"""What the kernel shows of the loaded driver, until the next boot."""


@dataclass
class Watch:
    """Submits jobs for all nodes without an end, and reads meanwhile which nodes are drained, and why."""

    pool: LabPool
    most_out: int = 0
    reasons: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Submit no more, and wait until the last jobs have ended."""
        self.over.set()
        self.thread.join()
        assert eventually(lambda: not self.pool.slurm("squeue", "-h"), HOURS)

    def _run(self) -> None:
        while not self.over.wait(2):
            found = dict(line.split(" ", 1) for line in self._lines("sinfo", "-h", "-N", "-o", "%N %E"))
            self.reasons |= {reason for reason in found.values() if reason != "none"}
            self.most_out = max(self.most_out, Counter(found.values())[REASON])
            if len(self._lines("squeue", "-h", "-r", "-t", "PD", "-o", "%A")) < HOSTS:
                job = "sleep $((10 + RANDOM % 20))"
                self._lines("sbatch", f"--array=1-{HOSTS}", "--exclusive", "--output=/dev/null", f"--wrap={job}")

    def _lines(self, *argv: str) -> list[str]:
        return self.pool.slurm(*argv).splitlines()


@dataclass
class StopWatch:
    """Prints what the parts of the story took."""

    began: float = field(default_factory=time.monotonic)

    def lap(self, what: str) -> None:
        now = time.monotonic()
        free = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
        load = Path("/proc/loadavg").read_text().split()[0]
        largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
        print(f"{what}: {now - self.began:.0f} s; load {load}; {free}; largest child so far {largest} MiB", flush=True)
        self.began = now


@pytest.fixture
def pool() -> Iterator[LabPool]:
    """Gold nodes with the old driver, in racks of four; at most two of them may reboot at once."""
    if missing():
        pytest.skip("Slurm is not installed")
    with tempfile.TemporaryDirectory(prefix="rolling", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        watch = StopWatch()
        (folder / "shared").mkdir()
        with running_lab("rolling", "10.182.0.0/16", folder, "--hosts", str(HOSTS + 1)) as lab:
            (lab.site / "suites/brief.yml").write_text(SUITE)
            file = lab.site / "site.yml"
            text = file.read_text().replace("\nfabric:\n", f"\nfabric:\n  reboots: {REBOOTS}\n")
            for before, after in (
                ("  reboots: false", "  reboots: true"),
                ("configure: 900", "configure: 7200"),
                ("install: 32", "install: 6"),
            ):
                text = text.replace(before, after)
            file.write_text(text + "\nburnin: brief\n")
            with lab_pool(LabPool(lab, folder / "slurm-client", folder / "shared", NODES, CONTROLLER)) as found:
                watch.lap(f"{HOSTS} gold nodes with Slurm on them")
                yield found


def maintain(pool: LabPool, *words: str) -> subprocess.Popen[str]:
    argv = (sys.executable, "-m", "clusterctl_cli.main", "maintain", *words, "--site", str(pool.site), "--yes")
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def line(pool: LabPool) -> str:
    """Return the line of what is half done, as `clusterctl nodes` prints it."""
    notes = pool.ordered("nodes").splitlines()
    return next((note for note in notes if note.startswith("maintenance: ")), "")


def done(pool: LabPool) -> list[str]:
    """Return the nodes that are changed."""
    (plan,) = json.loads(pool.ordered("maintain", "status", "driver", "-o", "json"))["plans"]
    return [node["name"] for node in plan["nodes"] if node["state"] == "done"]


def most_reboots(pool: LabPool) -> tuple[int, int]:
    """Return how many hosts were rebooted, and how many at once: from the intent in the journal to the start of init."""
    with closing(open_site(pool.site).journal) as journal:
        names = {node: name for name, node in journal.names().items()}
        intents = [
            (names[NodeId(event.subject)], event.at.timestamp())
            for event in journal.histories(list(names), [Kind.ACT_INTENDED])
            if isinstance(event.payload, ActIntended) and event.payload.act is Act.CONFIGURE_REBOOT
        ]
    ends = [float(pool.ssh(name, 'date -d "$(ps -o lstart= -p 1)" +%s')) for name, _ in intents]
    spans = [(start, end) for (_, start), end in zip(intents, ends, strict=True)]
    return len(spans), max(sum(one <= start < end for one, end in spans) for start, _ in spans)


def test_a_driver_change_goes_over_the_pool_and_kills_no_job(pool: LabPool) -> None:
    """A lost GPU stops it, a pause stops it, and each time it goes on; at the end all nodes are gold with the new driver."""
    assert eventually(lambda: pool.states() == dict.fromkeys(NODES, "idle")), pool.states()
    for name in NODES:
        pool.ssh(name, f"sudo -n sh -c {shlex.quote(LOADED)}")
    plan = pool.site / "driver.yml"
    plan.write_text(PLAN + "suite: brief\n")
    clock = StopWatch()
    with Watch(pool) as watch:
        assert eventually(lambda: set(pool.states().values()) == {"allocated"})
        pool.lab("inject", "missing-gpu", f"{BROKEN}:gpu5")
        with maintain(pool, str(plan)) as run:
            output = run.communicate(timeout=4 * HOURS)[0]
        clock.lap(f"until a failed node halted it, {len(done(pool))} done")
        assert run.returncode == 1, output
        assert line(pool).startswith(
            f"maintenance: driver is halted: {len(done(pool))} of {HOSTS} nodes done, 1 failed ("
        ), output
        assert pool.stage(BROKEN) == "quarantined"
        assert BROKEN not in done(pool)

        pool.lab("heal", BROKEN)
        pool.ordered("release", BROKEN, "--reason", "reseated the GPU", "--yes")
        before = len(done(pool))
        with maintain(pool, "resume", "driver") as run:
            assert eventually(lambda: len(done(pool)) > before, 2 * HOURS)
            pool.ordered("maintain", "pause", "driver", "--reason", "power work", "--yes")
            run.communicate(timeout=2 * HOURS)
        clock.lap(f"until it was paused, {len(done(pool))} done")
        if len(done(pool)) < HOSTS:
            assert line(pool) == f"maintenance: driver is paused: {len(done(pool))} of {HOSTS} nodes done (power work)"
            with maintain(pool, "resume", "driver") as run:
                output = run.communicate(timeout=4 * HOURS)[0]
            assert run.returncode == 0, output
    clock.lap("until all were changed, and the last jobs over")
    assert f"done: {HOSTS} of {HOSTS} nodes done" in pool.ordered("maintain", "status")
    assert line(pool) == ""

    jobs = pool.slurm("sacct", "-X", "-D", "-n", "-P", "-S", "now-1days", "--format=State,ExitCode").split()
    assert set(jobs) == {"COMPLETED|0:0"}, Counter(jobs)
    print(f"{len(jobs)} jobs, all of them completed; at most {watch.most_out} nodes were out", flush=True)
    assert len(jobs) > 2 * HOSTS
    assert watch.most_out <= RACK
    assert {reason.rpartition(":")[0] for reason in watch.reasons} <= {
        REASON.rpartition(":")[0],
        "clusterctl:gpu_count",
    }
    count, at_once = most_reboots(pool)
    print(f"{count} reboots, at most {at_once} at once", flush=True)
    assert count == HOSTS
    assert at_once <= REBOOTS
    for name in NODES:
        assert set(pool.ssh(name, "nvidia-smi --query-gpu=driver_version --format=csv,noheader").split()) == {NEW}
        assert pool.stage(name) == "gold"
    assert eventually(lambda: pool.states() == dict.fromkeys(NODES, "idle")), pool.states()
