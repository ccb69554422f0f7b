"""What it costs to lint a wiring plan, compared with merely reading the same plan.

    python -m benchmarks.plan_lint [--hosts 512 --hosts 4096]

Each plan is generated with three tiers, 8 rails and switches of 64 ports. «Reading» is `decode_draft` of its CSV in the
same process: each line split, validated and made a cable. The best of three turns counts for both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.cabling.lint.linter import lint
from clusterctl.cabling.lint.plan_index import PlanRules
from clusterctl.formats.wiring.csv_plan import wiring_csv
from clusterctl.formats.wiring.plan import decode_draft

RAILS, RADIX, TIERS, TURNS = 8, 64, 3, 3
Made = TypeVar("Made")


def least_cpu_s(work: Callable[[], Made]) -> tuple[float, Made]:
    """Seconds of processor of the cheapest turn, and what the last one made."""
    spent: list[float] = []
    for _ in range(TURNS):
        begin = time.process_time()
        made = work()
        spent.append(time.process_time() - begin)
    return min(spent), made


def plan_of(hosts: int) -> bytes:
    """The CSV of a generated plan."""
    adapters = tuple(f"mlx5_{number}" for number in range(RAILS))
    shape = shape_of(FabricSize(hosts, RAILS, RADIX, TIERS))
    return wiring_csv(generate(shape, PortNaming(adapters, twin_cages=True), RackLayout(host_prefix="node"))).encode()


def main() -> None:
    """Time each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, action="append", help="hosts of a plan (default: 512 and 4,096)")
    for hosts in parser.parse_args().hosts or (512, 4096):
        written = plan_of(hosts)
        reading_s, draft = least_cpu_s(lambda data=written: decode_draft(data, file="plan.csv"))
        lint_s, found = least_cpu_s(lambda read=draft: lint([read], PlanRules()))
        print(
            f"{hosts:5} hosts, {len(draft.cables):6} cables, {len(found.flaws)} flaws: reading {reading_s:5.2f} s CPU,"
            f" lint {lint_s:5.2f} s CPU, {lint_s / reading_s:.2f} times reading"
        )


if __name__ == "__main__":
    main()
