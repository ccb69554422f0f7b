"""cpu-memory-load: the output of stress-ng and the kernel's counters for this machine's processors and memory.

Stands in for a burn-in program that would load the controller's own processors. The layout of text and figures is that
of stress-ng 0.15.06 (Debian 12). For a module that flips bits it is the output of a run in which bits of its memory
were changed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Dimm, Facts, load
from clusterctl_lab.emulators.host_tools.host.power import work_processors

RATE = 1000.0
"""Of one CPU, in stress-ng's own unit a second."""
WORDS = 2
FAILED = 2
FLIPPED = (
    "stress-ng: fail:  [4242] rand-set: detected 497 memory errors\n"
    "stress-ng: fail:  [4241] vm: detected 497 bit errors while stressing memory\n"
    "stress-ng: error: [4240] process [4241] (vm) terminated with an error, exit status=2 (stressor failed)\n"
    "stress-ng: info:  [4240] unsuccessful run completed in {seconds}.09s"
)
WELL = "stress-ng: info:  [4240] successful run completed in {seconds}.04s"


def main(argv: Sequence[str]) -> int:
    if len(argv) != WORDS or not all(word.isdigit() for word in argv):
        sys.stderr.write("the lab's cpu-memory-load takes SECONDS PERCENT\n")
        return 2
    seconds, percent = map(int, argv)
    facts = load()
    work_processors(facts)
    reported = {
        "seconds": float(seconds),
        "before": _counted(facts, loaded=False),
        "after": _counted(facts, loaded=True),
        "packages": [_package(facts, package, seconds, percent) for package in range(facts.cpus)],
    }
    json.dump(reported, sys.stdout)
    return 0


def _modules_of(facts: Facts, package: int) -> tuple[Dimm, ...]:
    """Return the modules of a package: of two packages, the first has the first half."""
    each = len(facts.dimms) // facts.cpus
    return facts.dimms[package * each : (package + 1) * each]


def _counted(facts: Facts, *, loaded: bool) -> dict[str, object]:
    modules = [
        {
            "name": dimm.locator,
            "location": f"channel {at % 8 // 2} slot {at % 2}",
            "corrected": dimm.corrected,
            "uncorrected": dimm.uncorrected + (loaded and dimm.flips),
        }
        for at, dimm in enumerate(facts.dimms)
    ]
    packages = [{"package": package, "throttled": 0, "machine_checks": 0} for package in range(facts.cpus)]
    return {"modules": modules, "packages": packages}


def _package(facts: Facts, package: int, seconds: int, percent: int) -> dict[str, object]:
    modules = _modules_of(facts, package)
    flips = any(dimm.flips for dimm in modules)
    cpus = facts.cores // facts.cpus
    size = sum(dimm.size_mib for dimm in modules) * 2**20 * percent // 100
    messages = (FLIPPED if flips else WELL).format(seconds=seconds)
    metrics = _metric("cpu", cpus * RATE, seconds) + _metric("vm", cpus * RATE * 20, seconds)
    head = {"package": package, "cpus": cpus, "bytes": size, "code": FAILED if flips else 0}
    return {**head, "output": messages, "metrics": f"---\nmetrics:\n{metrics}...\n"}


def _metric(stressor: str, rate: float, seconds: int) -> str:
    return (
        f"    - stressor: {stressor}\n"
        f"      bogo-ops: {rate * seconds:.0f}\n"
        f"      bogo-ops-per-second-usr-sys-time: {rate:f}\n"
        f"      bogo-ops-per-second-real-time: {rate:f}\n"
        f"      wall-clock-time: {float(seconds):f}\n\n"
    )
