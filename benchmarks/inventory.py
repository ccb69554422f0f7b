"""What it takes to read a whole inventory and the logs of each of hundreds of slow BMCs, as `clusterctl discover` does.

    python -m benchmarks.inventory [--bmcs 511] [--latency 1-3] [--at-once 256] TREE…

TREE: recordings of BMCs (folders or archives), served by `clusterctl lab replay` in a process of its own, each copy
with its own serials, over TLS. For comparison: the same requests one after another. Server and client share this
machine's processors. The defaults ask what the project promises: 511 BMCs that take 1 to 3 s a request, in 10 minutes.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.bmc_sweep import PORT, served
from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.node import Inventory
from clusterctl.ports import BmcAddress, Deadline

SESSION = 3
"""Requests of each BMC in addition to what is read: the service root, log in, log out."""
PARTS = ("gpus", "hcas", "nics", "drives", "psus", "dimms", "fans", "firmware")
LIMIT_S = 3600.0


class Now:
    """The controller's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Read:
    """One BMC: its report, and what that took."""

    inventory: Inventory
    entries: int
    requests: int
    seconds: float


def addresses(folder: Path) -> list[BmcAddress]:
    """The BMCs that are served, as a site would reach them."""
    password = (folder / "bmc-password").read_text().strip()
    with (folder / "bmcs.csv").open() as file:
        hosts = [row["bmc_address"] for row in csv.DictReader(file)]
    return [BmcAddress(host, "root", password, PORT, str(folder / "lab-ca.pem")) for host in hosts]


def read(bmcs: RedfishBmcs, address: BmcAddress) -> Read:
    began, deadline = time.monotonic(), Deadline.after(LIMIT_S)
    with bmcs.open(address, deadline) as bmc:
        inventory, entries = bmc.inventory(deadline), bmc.event_log(deadline)
    asked = SESSION + sum(_resources(item) - 1 for item in (*inventory.evidence, *entries.evidence))
    return Read(inventory.value, len(entries.value), asked, time.monotonic() - began)


def _resources(evidence: Evidence) -> int:
    document = json.loads(evidence.content)
    return len(document["read"]) + len(document["unread"]) + len(document["omitted_bytes"])


def show(found: Sequence[Read], wall: float, cpu: float, mean_s: float) -> None:
    asked = [one.requests for one in found]
    times = sorted(one.seconds for one in found)
    unread = {name: sum(getattr(one.inventory, name) is None for one in found) for name in PARTS}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(found)} inventories, {len({one.inventory.serial for one in found})} serials, {wall:.0f} s wall")
    print(f"client       {cpu:.0f} s CPU, {1000 * cpu / len(found):.0f} ms a BMC, {peak:.0f} MiB")
    print(f"requests     {sum(asked)} in all, {min(asked)} to {max(asked)} for a BMC, logs included")
    print(f"one BMC      {times[len(times) // 2]:.0f} s median, {times[-1]:.0f} s the slowest")
    print(f"one by one   {sum(asked) * mean_s:.0f} s of waiting alone: {sum(asked) * mean_s / wall:.0f} times as long")
    print(f"unreported   {', '.join(f'{name} by {count}' for name, count in unread.items() if count) or 'nothing'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="+", type=Path, metavar="TREE")
    parser.add_argument("--bmcs", type=int, default=511)
    parser.add_argument("--latency", default="1-3", help="seconds that each answer takes")
    parser.add_argument("--at-once", type=int, default=256)
    options = parser.parse_args()
    low, high = (float(text) for text in options.latency.split("-"))
    copies = -(-options.bmcs // len(options.trees))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "replay"
        print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
        with served(options.trees, copies, options.latency, folder):
            bmcs, wanted = RedfishBmcs(Now()), addresses(folder)[: options.bmcs]
            wall, cpu = time.monotonic(), time.process_time()
            with ThreadPoolExecutor(options.at_once) as pool:
                found = list(pool.map(lambda address: read(bmcs, address), wanted))
            show(found, time.monotonic() - wall, time.process_time() - cpu, (low + high) / 2)


if __name__ == "__main__":
    main()
