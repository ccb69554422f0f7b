"""What the history of a fabric costs: `clusterctl cable observe`, whole process, at first, again, with cables gone.

    python -m benchmarks.cable_observe [--hosts 512 --hosts 4096]

The step `cable` of a run pays the same for each of its readings.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from benchmarks.cable_verify import CLI, RADIX, RAILS, measured, recorded
from clusterctl.formats.wiring.plan import decode_plan
from tests.edges.site.ready import write_ready_site

GONE = 3


def observe(hosts: int, folder: Path) -> None:
    site = folder / "site"
    write_ready_site(site)
    file = site / "wiring.csv"
    shape = ["--hosts", str(hosts), "--rails", str(RAILS), "--radix", str(RADIX), "--tiers", "3"]
    made = [*CLI, "cable", "plan", *shape, "--force", "--out", str(file)]
    subprocess.run(made, check=True, stderr=subprocess.DEVNULL)
    plan = decode_plan(file.read_bytes(), file=str(file))
    cables = [(cable.source, cable.destination) for cable in plan.cables]
    (folder / "whole").write_text(recorded(cables))
    (folder / "cut").write_text(recorded(cables[:-GONE]))
    print(f"{hosts} hosts, {len(cables)} cables")
    for what, name in (("first", "whole"), ("again", "whole"), ("cut", "cut")):
        argv = [*CLI, "cable", "observe", "--site", str(site), "--fabric", str(folder / name)]
        print(f"  cable observe, {what}  {measured(argv)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, action="append", help="default: 512")
    print(f"{os.cpu_count()} processors, load average {os.getloadavg()[0]:.1f}")
    for hosts in parser.parse_args().hosts or (512,):
        with tempfile.TemporaryDirectory() as folder:
            observe(hosts, Path(folder))


if __name__ == "__main__":
    main()
