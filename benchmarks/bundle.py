"""What a sweep takes on the node itself: the program that SSH carries there, run on this machine with a suite's probes.

    sudo python -m benchmarks.bundle [--suite bootstrap]

Prints the wall time of the whole, the probes that took longest, and the sum of all: what they would take one after
another. Where a machine has no GPU and no adapter, and most tools are missing, the figures show what waits by its
nature (port counters, processes that may hang) and of starting some forty programs, not of a real node's slow tools.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from clusterctl_burnin.probe import parse_readings
from clusterctl_burnin.suites.suite import shipped_suite
from clusterctl_burnin.sweep import sweep

SHOWN = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="bootstrap")
    asked = sweep(shipped_suite(parser.parse_args().suite).checks)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-"], input=asked.stdin, capture_output=True, check=True)
    wall = time.monotonic() - began
    probes = parse_readings(done.stdout.decode()).probes
    total = sum(probe.seconds for probe in probes.values())
    print(f"{len(probes)} probes   {wall:.1f} s on the wall   {total / wall:.1f} times that one after another")
    for probe in sorted(probes.values(), key=lambda probe: -probe.seconds)[:SHOWN]:
        print(f"  {probe.seconds:6.2f} s  {probe.name}  {probe.status.value}")


if __name__ == "__main__":
    main()
