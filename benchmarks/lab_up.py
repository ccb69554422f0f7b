"""How long `clusterctl lab up` takes until every host answers over SSH. Needs root; removes its lab afterwards.

    sudo python -m benchmarks.lab_up [--hosts 100] [--runs 3]

Images and packages that a first lab builds are built before the clock starts. Prints each run, the median, and how
busy the machine was before.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from lab.tests.lab_kit import running_lab

NAME, SUBNET = "benchup", "10.158.0.0/16"


def up_s(hosts: int, folder: Path) -> float:
    """Seconds from the start of `lab up` to its end."""
    began = time.monotonic()
    with running_lab(NAME, SUBNET, folder, "--hosts", str(hosts), "--installed"):
        return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        up_s(1, Path(folder))
        print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f} before")
        times = [up_s(options.hosts, Path(folder)) for _ in range(options.runs)]
    for seconds in times:
        print(f"lab up --hosts {options.hosts} --installed  {seconds:6.1f} s")
    print(f"median {statistics.median(times):.1f} s")


if __name__ == "__main__":
    main()
