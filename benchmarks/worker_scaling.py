"""How the throughput of a pool grows with its workers: machines from a BMC address to gold, on PostgreSQL.

    python -m benchmarks.worker_scaling [--nodes 256] [--run-nodes 32] [--workers 1 2 4] [--scale 40]

A site of fake machines (`tests/fake_fleet.py`), whose answers take the time of real ones divided by `--scale`. Its
nodes are ordered as runs of `--run-nodes` nodes; a worker carries out one run at a time, so that many nodes are under
way in each worker. Real: the journal on a PostgreSQL server of its own (with fsync), the queue, claims, all six steps,
checks and their judgement, and worker processes, composed of the same parts as `clusterctl worker`. For each number of
workers there is a new site.

linear         throughput of so many workers, by that of so many times one
CPU            of the workers, and of PostgreSQL, for one node
orchestration  of the time of one run: what is left after its machines' own time

No step begins with a canary here: by default a run waits until its first machine is configured, 16 minutes, which are
the site's choice and no cost of the orchestration.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.cable_verify import CLI, recorded
from benchmarks.queue_engines import HERTZ, server_seconds
from clusterctl.fleet.event import Stream
from clusterctl.fleet.node import Step
from clusterctl.fleet.payloads.runs import RunBegun, RunEnded
from clusterctl.formats.wiring.plan import decode_plan
from clusterctl.operations import bootstrap, detached, runs, workers
from clusterctl.operations.bootstrap import RunRequest
from clusterctl.operations.context import Invocation, SiteContext, open_site
from clusterctl.operations.gold_pool import gold_pool
from clusterctl.operations.operation import Event
from clusterctl.operations.runs import RunState
from clusterctl.operations.worker import Worker, WorkerRequest
from clusterctl_cli.stopping import stoppable
from tests.edges.journal.postgres import PostgresServer, running_server
from tests.edges.site.ready import write_ready_site
from tests.fake_fleet import FakeFleet, Machine, TrueTimes

POOL = "pod1"
SKU = """\
name: two
manufacturer: Dell
model: PowerEdge XE9680
gpu_count: 2
gpu_model: H100
hca_count: 2
hca_model: ConnectX-7
hca_rate_gbps: 400
cpu_count: 2
memory_gib: 256
data_drive_count: 0
root_disk: {max_gb: 600}
limits: h100-sxm-ndr400
"""
SUITE = """\
version: 1
name: pairs
extends: bootstrap
drop: [dcgm_exporter]
loads: [ib_write_bw]
pair_rounds: 5
"""
"""`dcgm_exporter` wants the power of GPUs to change under a long load, which recordings do not."""
SETTINGS = """
simulated: true
journal: {url}
burnin: pairs
batch: {{discover: 4096, install: 4096, configure: 4096, burnin: 4096}}
waves: {{canary: 0, at_once: 4096, per_rack: 0}}
timing: {{install_poll_s: {poll}, link_training_s: 1}}
"""
POLL_S = 15.0
"""Between two looks at an installer, of true time."""
MOST_REBOOTS = 4096
"""At once: with the default of 64, some thousands of nodes wait for each other's reboots of 5 minutes for hours."""
PATIENCE_S = 6 * 3600.0
LOOK_S = 3.0
"""Between two looks at the runs: each costs as much as a worker's own look at its queue."""


def fleet_names(site: Path) -> dict[str, Machine]:
    names = [line.partition(",")[0] for line in (site / "bmcs.csv").read_text().splitlines()[1:]]
    return {name: Machine(number) for number, name in enumerate(names, start=1)}


def write(folder: Path, url: str, nodes: int, scale: float) -> Path:
    """Write a site of so many machines, with a wiring plan, and the fabric as ibnetdiscover prints it."""
    site = write_ready_site(folder / "site")
    plan = site / "wiring.csv"
    shape = ("--hosts", str(nodes), "--rails", "2", "--host-prefix", "node", "--out", str(plan), "--force")
    subprocess.run([*CLI, "cable", "plan", *shape], check=True, stdout=subprocess.DEVNULL)
    cables = decode_plan(plan.read_bytes(), file=str(plan)).cables
    topology = recorded([(cable.source, cable.destination) for cable in cables]).replace("4xHDR", "4xNDR")
    (site / "topology.txt").write_text(topology)
    hosts = sorted({cable.destination.device for cable in cables if not cable.destination.port.isdigit()})
    rows = [f"{name},10.64.{at >> 8}.{at & 255},A{at // 4:04d},{1 + 8 * (at % 4)}" for at, name in enumerate(hosts, 1)]
    (site / "bmcs.csv").write_text("\n".join(["name,bmc_address,rack,unit", *rows, ""]))
    for name, text in {"skus/two.yml": SKU, "suites/pairs.yml": SUITE}.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text)
    settings = (site / "site.yml").read_text().replace("skus: [dell-xe9680-h100]", "skus: [two]")
    for default in ("\nburnin: bootstrap\n", "\nbatch: {discover: 64, install: 32, configure: 50, burnin: 64}\n"):
        settings = settings.replace(default, "\n")
    settings = settings.replace("\nconfigure:\n", "\nconfigure:\n  waves: {canary: 0}\n")
    settings = settings.replace("\n  plan: wiring.csv\n", f"\n  plan: wiring.csv\n  reboots: {MOST_REBOOTS}\n")
    (site / "site.yml").write_text(settings + SETTINGS.format(url=url, poll=POLL_S / scale))
    return site


# --- one worker


def opened(site: Path, fleet: FakeFleet, invocation: Invocation) -> SiteContext:
    """Open the site for a run that acts on the fake machines."""
    return replace(open_site(site, invocation), connect=lambda _site, _access: fleet)


def work(site: Path, name: str, scale: float) -> int:
    """Work as `clusterctl worker` does, until SIGTERM."""
    context = open_site(site, Invocation(command="worker"))
    fleet = FakeFleet(fleet_names(site), (site / "topology.txt").read_text(), gold_pool(context.site), scale)

    def report(event: object) -> None:
        if isinstance(event, Event):
            print(f"{event.node} {event.text}", flush=True)

    with stoppable() as stopping, closing(context.journal):
        request = WorkerRequest(name=name, pool=POOL, poll_s=0.5)
        return Worker(context, request, partial(opened, site, fleet), stopping, report).work()


# --- the measurement


@dataclass(frozen=True, kw_only=True)
class Measured:
    """`run_s`: mean seconds of a run. CPU in seconds; `peak_mib` of the largest worker; `stages` with the causes."""

    workers: int
    wall_s: float
    run_s: float
    cpu_s: float
    database_s: float
    peak_mib: float
    stages: Counter[str]


@contextlib.contextmanager
def working(site: Path, count: int, scale: float) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many workers, until the context ends; each ends in order."""
    command = (sys.executable, "-m", "benchmarks.worker_scaling", "--scale", str(scale), "--work", str(site))
    with ExitStack() as stack:
        started = []
        for number in range(count):
            log = stack.enter_context((site.parent / f"w{number}.log").open("wb"))
            started.append(subprocess.Popen((*command, f"w{number}"), stdout=log, stderr=log))
        try:
            yield started
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait()


def until(condition: Callable[[], bool], what: str, started: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait until the condition holds; raise where a worker ends before."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end or any(process.poll() is not None for process in started):
            raise RuntimeError(f"{what}: not reached, or a worker has ended; its log is in the folder of the site")
        time.sleep(LOOK_S)


def order(context: SiteContext, names: Sequence[str]) -> str:
    """Order a bootstrap of these nodes as `clusterctl bootstrap --queue pod1 --detach --yes` does; return the run."""
    request = RunRequest(steps=tuple(Step), limit=tuple(names))
    preview = bootstrap.preview(context, request)
    origin = detached.Origin(command="bootstrap", approved=preview.digest, pool=POOL, nodes=tuple(names))
    return detached.order(context, request, origin).name


def measure(site: Path, server: PostgresServer, count: int, options: argparse.Namespace) -> Measured:
    context = open_site(site, Invocation("benchmark", "bootstrap"))
    names = sorted(fleet_names(site))
    with closing(context.journal), working(site, count, options.scale) as started:
        until(lambda: len(workers.read(context).workers) == count, "all workers there", started)
        began, served, before = time.monotonic(), server_seconds(server), sum(map(cpu_seconds, started))
        ordered = [order(context, names[at : at + options.run_nodes]) for at in range(0, len(names), options.run_nodes)]
        left = set(ordered)

        def over() -> bool:
            left.difference_update([name for name in left if runs.find(context, name).state is RunState.ENDED])
            return not left

        until(over, "all runs ended", started)
        wall, served = time.monotonic() - began, server_seconds(server) - served
        stages = Counter(f"{node.stage.value} {node.cause}".strip() for node in context.nodes())
        lengths = [run_seconds(context, name) for name in ordered]
        cpu, peak = sum(map(cpu_seconds, started)) - before, max(map(peak_mib, started))
    return Measured(
        workers=count,
        wall_s=wall,
        run_s=sum(lengths) / len(lengths),
        cpu_s=cpu,
        database_s=served,
        peak_mib=peak,
        stages=stages,
    )


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Return the seconds of processor that a process has used so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / HERTZ


def peak_mib(process: subprocess.Popen[bytes]) -> float:
    """Return the most memory that a process has had so far."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def run_seconds(context: SiteContext, name: str) -> float:
    """Return the seconds from a run's begin to its end."""
    events = list(context.journal.history(Stream.RUN, name))
    (end,) = [event.at for event in events if isinstance(event.payload, RunEnded)]
    return (end - next(event.at for event in events if isinstance(event.payload, RunBegun))).total_seconds()


def show(found: Measured, one: Measured | None, options: argparse.Namespace) -> None:
    hourly = 3600 * options.nodes / found.wall_s
    linear = one.wall_s / found.wall_s / found.workers * one.workers if one else 1.0
    waits = TrueTimes().node
    over = found.run_s - waits / options.scale
    print(
        f"{found.workers} workers: {found.wall_s:7.1f} s   {hourly:8.0f} nodes/h   {linear:5.2f} of linear   "
        f"CPU a node: workers {1000 * found.cpu_s / options.nodes:.0f} ms, PostgreSQL "
        f"{1000 * found.database_s / options.nodes:.0f} ms   {found.peak_mib:.0f} MiB   "
        f"a run {found.run_s:.1f} s, of these machines {waits / options.scale:.1f} s, orchestration {over:.1f} s: "
        f"{100 * over / found.run_s:.1f} %, at true speed {100 * over / (over + waits):.2f} %   "
        f"{dict(found.stages)}, load average {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=256)
    parser.add_argument("--run-nodes", type=int, default=32)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--scale", type=float, default=40.0, help="how much faster than true time")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        sys.exit(work(Path(options.work[0]), options.work[1], options.scale))
    shape = f"{options.nodes} nodes in runs of {options.run_nodes}, {options.scale} times as fast"
    print(f"{os.cpu_count()} processors; {shape}", flush=True)
    one: Measured | None = None
    with running_server() as server:
        server.stop()
        server.listening = " -c fsync=on -c max_connections=200"
        server.start()
        for count in options.workers:
            with tempfile.TemporaryDirectory() as folder:
                site = write(Path(folder), server.url(), options.nodes, options.scale)
                found = measure(site, server, count, options)
            one = one or found
            show(found, one, options)


if __name__ == "__main__":
    main()
