"""What `clusterctl metrics` costs over a fleet: whole process, and size.

    python -m benchmarks.metrics [--nodes 4096]

The journal is that of benchmarks.fleet_report.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.fleet_report import fill
from clusterctl.operations.context import open_site
from tests.edges.site.ready import write_ready_site


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4096)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site, file = Path(folder) / "site", Path(folder) / "clusterctl.prom"
        write_ready_site(site)
        context = open_site(site)
        fill(context, options.nodes)
        context.journal.close()
        argv = [sys.executable, "-m", "clusterctl_cli.main", "metrics", "--site", str(site), "--write", str(file)]
        for name, command in (("python -c pass", [sys.executable, "-c", "pass"]), ("clusterctl metrics", argv)):
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{name}: {used:.2f} s of CPU, {time.monotonic() - began:.2f} s on the wall")
        text = file.read_text()
        samples = sum(not line.startswith("#") for line in text.splitlines())
        print(f"{samples} samples, {len(text) / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
