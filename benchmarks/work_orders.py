"""How long `clusterctl report --work-orders` takes on a big fleet, and how much memory, compared with `python -c pass`.

    python -m benchmarks.work_orders [--nodes 4096] [--events 20]

Builds a site with a journal of NODES × EVENTS events and a wiring plan of NODES × 8 adapters; in turn a tenth of the
nodes and all of them are in quarantine by a GPU and a port. Whole processes, medians of three.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.journal_size import build
from clusterctl.fleet.codec import report_to_data
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Digest, Finding, Report, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.operations.context import open_site
from tests.events import new_event

CLUSTERCTL = [sys.executable, "-m", "clusterctl_cli.main"]
FINDINGS = tuple(
    Finding(
        check=check,
        verdict=Verdict.FAIL,
        code=Code.GPU_ECC_UNCORRECTABLE,
        subject=subject,
        cause="it is broken",
        measured=Quantity(1, "errors"),
        expected=exactly(0, "errors"),
        remedy="replace it",
        evidence=(Digest("ab" * 32),),
    )
    for check, subject in (("gpu_ecc", "gpu 3"), ("hca_errors", "mlx5_6"))
)


def stop(site: Path, numbers: range) -> None:
    """Quarantine these nodes at burn-in."""
    report = report_to_data(Report("burnin", "bootstrap", FINDINGS))
    stopped = {"step": "burnin", "cause": "it is broken", "remedy": "replace it", "verdict": "fail"}
    journal = open_site(site).journal
    for number in numbers:
        node = f"id{number:04d}"
        journal.append(
            [
                new_event("node", node, Kind.REPORT_RECORDED, {"report": report}),
                new_event("node", node, Kind.NODE_QUARANTINED, stopped),
            ]
        )
    journal.close()


def cost(argv: list[str]) -> tuple[float, float, float]:
    """Wall and processor seconds, medians of three; MiB at most, of all processes so far: smaller ones first."""
    walls, processors = [], []
    for _ in range(3):
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.perf_counter() - began)
        processors.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), statistics.median(processors), after.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=4096)
    parser.add_argument("--events", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        site = Path(temporary) / "site"
        build(site, options.nodes, options.events)
        plan = ["cable", "plan", "--hosts", str(options.nodes), "--rails", "8", "--host-prefix", "node"]
        subprocess.run([*CLUSTERCTL, *plan, "--out", str(site / "wiring.csv"), "--force"], check=True)
        wall, processor, _ = cost([sys.executable, "-c", "pass"])
        print(f"python -c pass         {wall:6.2f} s, CPU {processor:6.2f} s")
        for share, numbers in (("a tenth", range(0, options.nodes, 10)), ("all", range(options.nodes))):
            stop(site, numbers)
            for form in ("md", "csv"):
                wall, processor, mib = cost(
                    [*CLUSTERCTL, "report", "--work-orders", "--format", form, "--site", str(site)]
                )
                print(f"{share:8s} stopped, {form:3s}  {wall:6.2f} s, CPU {processor:6.2f} s   {mib:4.0f} MiB")


if __name__ == "__main__":
    main()
