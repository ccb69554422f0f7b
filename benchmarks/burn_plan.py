"""What the plan of a burn costs for 512 hosts × 8 rails: time and memory of the whole command, on recorded tables.

    python -m benchmarks.burn_plan [--hosts 512] [--cut 20]

OpenSM routes the generated fabric in ibsim first; that is not counted. With --cut cables between switches are missing,
so that OpenSM falls back from ftree, which is the hard case.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.fleet.fabric.wiring import WiringPlan
from tests.cabling.generate.subnet import sweep

RAILS, RADIX, TIERS = 8, 64, 3
CHILD = """
import sys
from clusterctl_cli.main import run

run(sys.argv[1:])
print(*(line for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
"""
"""The command, which prints at its end how large it was (kB): getrusage would count what its parent was as well."""


def planned(hosts: int, cut: int) -> WiringPlan:
    labels = PortNaming(tuple(f"mlx5_{number}" for number in range(RAILS)), twin_cages=True)
    plan = generate(shape_of(FabricSize(hosts, RAILS, RADIX, TIERS)), labels, RackLayout())
    trunks = [cable for cable in plan.cables if not {end.device for end in cable.ends} & plan.hosts]
    missing = set(random.Random(0).sample(trunks, cut))
    return replace(plan, cables=tuple(cable for cable in plan.cables if cable not in missing))


def record(plan: WiringPlan, folder: Path) -> None:
    subnet = sweep(plan, RADIX, folder)
    (folder / "fts").write_text(subnet.tables)
    (folder / "fabric").write_text(subnet.fabric)


def measured(folder: Path) -> tuple[float, float, int]:
    """Wall time and processor time (s), and the largest size (MiB), of the command in a process of its own."""
    files = (f"--fts={folder}/fts", f"--fabric={folder}/fabric", f"--opensm-log={folder}/osm.log")
    argv = (sys.executable, "-c", CHILD, "cable", "burnplan", *files, "--window=999d", "--json")
    began, before = time.monotonic(), cpu_s()
    with (folder / "plan.json").open("wb") as out:
        output = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, text=True, check=True).stderr
    wall = time.monotonic() - began
    return wall, cpu_s() - before, int(output.split()[-2]) >> 10


def cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=512)
    parser.add_argument("--cut", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record(planned(options.hosts, options.cut), folder)
        wall, cpu, size = measured(folder)
        tables = (folder / "fts").stat().st_size >> 20
        print(f"{options.hosts} hosts, {options.cut} cables cut, tables of {tables} MiB")
        print(f"cable burnplan: {wall:.1f} s, of which {cpu:.1f} s of a processor; at most {size} MiB")


if __name__ == "__main__":
    main()
