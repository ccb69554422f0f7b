"""What judging the counters of a whole fabric costs: `clusterctl cable health`, whole process, between two readings and
over readings that the journal has.

    python -m benchmarks.cable_health [--hosts 512 --hosts 4096] [--readings 10]

The readings have the form of `ibqueryerrors` and of its data counters, of a three-tier fabric of 8 rails: each port has
carried data, one of a hundred has errors. How long the tools take to read so many ports is not in it: that needs a
fabric.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.cable_verify import CLI, RADIX, RAILS, measured, recorded
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.finding import Evidence, Origin
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.formats.wiring.plan import decode_plan
from clusterctl.operations.context import open_site
from clusterctl.steps.cable.link_health import counters_read
from tests.edges.site.ready import write_ready_site
from tests.formats.infiniband.printers import ibqueryerrors
from tests.steps.fabric_burn.world import data_counters

BAD = 100
"""One port of so many has errors."""
EVERY = timedelta(hours=6)


def readings(fabric: Fabric, count: int) -> Iterator[tuple[datetime, str]]:
    """Yield so many readings of the fabric's counters, the last one of now."""
    ports = sorted({end for link in fabric.cables() for end in (link.a, link.b)})
    now = datetime.now(UTC)
    for number in range(count):
        at = now - EVERY * (count - 1 - number)
        errors = {port: {"SymbolErrorCounter": 900 * number} for port in ports[::BAD] if number}
        passed: dict[tuple[PortId, str], int] = {
            (port, name): 10**12 * (number + 1) for port in ports for name in ("PortXmitData", "PortRcvData")
        }
        head = f"# {at:%Y-%m-%dT%H:%M:%S.%f}Z, read within 3.000 s\n"
        yield at, head + ibqueryerrors(fabric, errors) + data_counters(fabric, passed)


def health(hosts: int, count: int, folder: Path) -> None:
    """Print what each command takes."""
    site = folder / "site"
    write_ready_site(site)
    plan = site / "wiring.csv"
    shape = ["--hosts", str(hosts), "--rails", str(RAILS), "--radix", str(RADIX), "--tiers", "3"]
    made = [*CLI, "cable", "plan", *shape, "--force", "--out", str(plan)]
    subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
    cables = [(cable.source, cable.destination) for cable in decode_plan(plan.read_bytes(), file=str(plan)).cables]
    seen = recorded(cables)
    (folder / "fabric").write_text(seen)
    fabric = parse_ibnetdiscover(seen)
    with closing(open_site(site).journal) as journal:
        for number, (at, text) in enumerate(readings(fabric, count)):
            (folder / ("before" if number == count - 2 else "after")).write_text(text)
            kept = [
                Evidence(name, "x", at, Origin.SIMULATED, words.encode()) for name, words in (("f", seen), ("c", text))
            ]
            journal.store(kept)
            journal.append([counters_read(kept, at, 2 * len(cables))])
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file()) / 2**20
    print(f"{hosts} hosts, {len(cables)} cables, {count} readings in a site of {size:.0f} MiB")
    files = ["--fabric", str(folder / "fabric"), "--before", str(folder / "before"), "--after", str(folder / "after")]
    print(f"  between two readings     {measured([*CLI, 'cable', 'health', *files, '--plan', str(plan)])}", flush=True)
    print(f"  over the site's history  {measured([*CLI, 'cable', 'health', '--since', '7d', '--site', str(site)])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, action="append", help="default: 512")
    parser.add_argument("--readings", type=int, default=10)
    options = parser.parse_args()
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    for hosts in options.hosts or (512,):
        with tempfile.TemporaryDirectory() as folder:
            health(hosts, options.readings, Path(folder))


if __name__ == "__main__":
    main()
