"""What `clusterctl discover --sweep` costs over a /22 of slow BMCs: the whole client process, from start to exit.

    python -m benchmarks.bmc_sweep [--latency 0.05-0.3] [--recording TREE …]

511 BMCs over TLS on addresses of 127.78.0.0/22, served by `clusterctl lab replay` in a process of its own: minimal
trees in four vendors' shapes, or copies of recordings. For comparison: one plain `requests.get` of each service root,
as many at a time, and what the sweep's requests would take one after another. Server and client share this machine's
processors, so the server's share is printed as well.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from clusterctl.edges.redfish.sweep.scan import PROBES_AT_ONCE
from tests.edges.site.ready import write_ready_site
from tests.edges.sweep.shapes import dell, hpe, openbmc, supermicro
from tests.ports import reserve_port

NETWORK, FIRST = "127.78.0.0/22", "127.78.0.1"
PORT = 28443
COPIES = 73
SHAPES = (dell, supermicro, hpe, openbmc, dell, supermicro, hpe)
"""Seven trees × 73 copies are 511 BMCs."""
CLI = (sys.executable, "-m", "clusterctl_cli.main")
READY = re.compile(r"(\d+) BMCs at ")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process: seconds on the wall, seconds of processor, MiB resident at most, exit status, what it printed."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    status: int
    printed: str


def measured(argv: Sequence[str], out: Path) -> Cost:
    begin = time.monotonic()
    with out.open("w") as stdout, subprocess.Popen(argv, stdout=stdout) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - begin
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(wall, cpu, usage.ru_maxrss / 1024, process.returncode, out.read_text())


def write_trees(folder: Path) -> list[Path]:
    """The vendors' shapes as recordings: an index.json for each resource."""
    found = []
    for number, shape in enumerate(SHAPES):
        top = folder / f"{number}-{shape.__name__}"
        tree = shape("10.0.0.1", f"SN{number}000001", f"02:{number:02x}:00:00:00:01")
        for path, resource in tree.items():
            file = top / path.lstrip("/") / "index.json"
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps({"@odata.id": path, **resource}))
        found.append(top)
    return found


@contextlib.contextmanager
def served(trees: Sequence[Path], copies: int, latency: str, out: Path, port: int = PORT) -> Iterator[tuple[int, int]]:
    """The BMCs while the block runs: how many, and the process that they are."""
    words = ["--listen", f"{FIRST}:{port}", "--copies", str(copies), "--latency", latency, "--out", str(out)]
    argv = [*CLI, "lab", "replay", *words, *map(str, trees)]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as server:
        try:
            if server.stderr is None:
                raise RuntimeError("the server's words cannot be read")
            output = ""
            for line in server.stderr:
                output += line
                ready = READY.match(line)
                if ready:
                    yield int(ready[1]), server.pid
                    return
            raise RuntimeError(output)
        finally:
            server.terminate()


def write_site(folder: Path, replay: Path, port: int) -> Path:
    """A site without machines, that trusts the BMCs' authority and knows their password."""
    site = write_ready_site(folder / "site")
    file = site / "site.yml"
    file.write_text(file.read_text().replace("bmc:\n", f"bmc:\n  port: {port}\n"))
    (site / "bmcs.csv").unlink()
    (site / "bmc-ca.pem").write_text((replay / "lab-ca.pem").read_text())
    (site / "secrets" / "bmc-password").write_text((replay / "bmc-password").read_text())
    return site


def cpu_s(pid: int) -> float:
    """Seconds of processor that a process has taken so far (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def plain(addresses: Sequence[str], port: int, ca_file: Path) -> float:
    """Seconds for one GET of every service root, by `requests` alone."""

    def get(address: str) -> None:
        url = f"https://{address}:{port}/redfish/v1/"
        requests.get(url, verify=str(ca_file), timeout=30).raise_for_status()

    begin = time.monotonic()
    with ThreadPoolExecutor(PROBES_AT_ONCE) as pool:
        list(pool.map(get, addresses))
    return time.monotonic() - begin


def show(cost: Cost, document: dict[str, Any], count: int, mean_s: float) -> None:
    asked = [bmc["requests"] for bmc in document["bmcs"]]
    outcomes = Counter(bmc["outcome"] for bmc in document["bmcs"])
    serials = {bmc["serial"] for bmc in document["bmcs"]}
    print(f"{count} BMCs served, {document['asked']} addresses asked: {dict(outcomes)}, {len(serials)} serials")
    print(
        f"sweep        {cost.wall_s:6.1f} s wall  {cost.cpu_s:5.1f} s CPU  {cost.peak_mib:4.0f} MiB  exit {cost.status}"
    )
    print(f"requests     {sum(asked)} in all, {min(asked)} to {max(asked)} for a BMC")
    sequential = sum(asked) * mean_s
    print(
        f"one by one   {sequential:6.0f} s of waiting for answers alone: {sequential / cost.wall_s:.0f} times as long"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", default="0.05-0.3", help="seconds that each answer takes")
    parser.add_argument("--recording", action="append", type=Path, default=[], help="instead of our own shapes")
    options = parser.parse_args()
    low, high = (float(text) for text in options.latency.split("-"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trees = options.recording or write_trees(folder / "trees")
        copies = COPIES if not options.recording else -(-511 // len(trees))
        print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
        port = reserve_port(FIRST)
        with served(trees, copies, options.latency, folder / "replay", port) as (count, server):
            site = write_site(folder, folder / "replay", port)
            argv = [*CLI, "discover", "--sweep", NETWORK, "--site", str(site), "--json"]
            before = cpu_s(server)
            cost = measured(argv, folder / "out.json")
            print(f"the server took {cpu_s(server) - before:.1f} s CPU meanwhile")
            document = json.loads(cost.printed)
            show(cost, document, count, (low + high) / 2)
            plain_s = plain([bmc["address"] for bmc in document["bmcs"]], port, site / "bmc-ca.pem")
            print(
                f"plain GETs   {plain_s:6.1f} s for one of each: the sweep takes {cost.wall_s / plain_s:.1f} times that"
            )


if __name__ == "__main__":
    main()
