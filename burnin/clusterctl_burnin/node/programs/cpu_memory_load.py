"""Runs on a node, as the built-in probe `cpu-memory-load SECONDS PERCENT`: stress-ng on every processor and on so much
of the memory that is available, checking its results; and what the kernel counted before and after.

Standard library only, Python 3.9. Each processor package has a stress-ng of its own, kept on that package's CPUs: its
memory is its own as far as there is enough, and a wrong result identifies its package. A counter that is not
there, or holds no number, is printed as null, not as zero.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional

from clusterctl_burnin.node.processes import start, wait

SYSTEM = Path("/sys/devices/system")
PROC = Path("/proc")
END = 60.0  # seconds that stress-ng may take to end: a worker looks at the time between two passes over its memory
CPUS_A_MEMORY_WORKER = 4
LEAST_BYTES = 16 << 20

Packages = Dict[int, List[int]]
Run = Callable[[List[str], List[int], Path], "subprocess.Popen[str]"]


def text(path: Path) -> Optional[str]:
    try:
        return path.read_text().strip()
    except (OSError, ValueError):
        return None


def number(path: Path) -> Optional[int]:
    found = text(path)
    return int(found) if found is not None and found.isdigit() else None


def packages(cpus: List[int], system: Path = SYSTEM) -> Packages:
    """Return the CPUs that we may run on, by the package that they are in."""
    found: Packages = {}
    for cpu in sorted(cpus):
        package = number(system / f"cpu/cpu{cpu}/topology/physical_package_id")
        found.setdefault(package or 0, []).append(cpu)
    return found


def available(proc: Path = PROC) -> int:
    """Return bytes of memory that can be had without swapping."""
    for line in (proc / "meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    raise LookupError("the kernel does not report MemAvailable")


def modules(system: Path = SYSTEM) -> list[dict[str, Any]]:
    """Return memory errors by module, as EDAC counts them; none where no driver is loaded."""
    found = []
    for folder in sorted(entry for kind in ("dimm", "rank") for entry in system.glob(f"edac/mc/mc[0-9]*/{kind}[0-9]*")):
        name = f"{folder.parent.name} {folder.name}"
        entry = {"name": text(folder / "dimm_label") or name, "location": text(folder / "dimm_location")}
        counts = {kind: number(folder / f"dimm_{short}_count") for kind, short in KINDS}
        found.append({**entry, **counts})
    return found


KINDS = (("corrected", "ce"), ("uncorrected", "ue"))


def throttled(cpus: List[int], system: Path = SYSTEM) -> Optional[int]:
    """Return how often a core of them, or their package, was slowed down for heat; siblings of a core count as one."""
    cores: Dict[str, int] = {}
    package = 0
    for cpu in cpus:
        folder = system / f"cpu/cpu{cpu}"
        core, whole = (number(folder / f"thermal_throttle/{what}_throttle_count") for what in ("core", "package"))
        if core is None:
            return None
        cores[text(folder / "topology/core_id") or str(cpu)] = core
        package = max(package, whole or 0)
    return sum(cores.values()) + package


def machine_checks(cpus: List[int], proc: Path = PROC) -> Optional[int]:
    """Return machine check exceptions that these CPUs took."""
    head, *rows = (text(proc / "interrupts") or "").splitlines() or [""]
    columns = [name.removeprefix("CPU") for name in head.split()]
    for row in rows:
        name, _, counts = row.partition(":")
        if name.strip() == "MCE":
            numbers = counts.split()[: len(columns)]
            return sum(int(count) for at, count in enumerate(numbers) if int(columns[at]) in cpus)
    return None


def counted(found: Packages) -> dict[str, Any]:
    each = [
        {"package": package, "throttled": throttled(cpus), "machine_checks": machine_checks(cpus)}
        for package, cpus in found.items()
    ]
    return {"modules": modules(), "packages": each}


def command(seconds: int, cpus: int, workers: int, size: int, folder: str) -> list[str]:
    argv = ["stress-ng", "--cpu", str(cpus), "--vm", str(workers), "--vm-bytes", str(size), "--vm-keep"]
    argv += ["--verify", "--metrics-brief", "--yaml", f"{folder}/metrics.yaml", "--temp-path", folder]
    return [*argv, "--timeout", f"{seconds}s"]


def start_on(argv: List[str], cpus: List[int], log: Path) -> subprocess.Popen[str]:
    """Start a program on these CPUs: a child has its parent's at first."""
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        with log.open("w") as output:
            return start(argv, log=output)
    finally:
        os.sched_setaffinity(0, ours)


def load(seconds: int, percent: int, found: Packages, folder: Path, run: Run) -> list[dict[str, Any]]:
    """Load all packages at once; return their results."""
    workers = {package: max(1, len(cpus) // CPUS_A_MEMORY_WORKER) for package, cpus in found.items()}
    size = max(LEAST_BYTES, available() * percent // 100 // sum(workers.values()))
    size -= size % 4096
    running = []
    for package, cpus in found.items():
        own = folder / str(package)
        own.mkdir(mode=0o700)
        argv = command(seconds, len(cpus), workers[package], size, str(own))
        running.append((package, cpus, own, run(argv, cpus, own / "log")))
    until = time.monotonic() + seconds + END
    results = []
    for package, cpus, own, process in running:
        code = wait(process, until)
        result = {"package": package, "cpus": len(cpus), "bytes": size * workers[package], "code": code}
        results.append({**result, "output": (text(own / "log") or "")[-4000:], "metrics": text(own / "metrics.yaml")})
    return results


def main(argv: list[str], run: Run = start_on) -> int:
    """Print `{"seconds", "before", "after", "packages": [{package, cpus, bytes, code, output, metrics}]}`."""
    if len(argv) != 2 or not all(word.isdigit() for word in argv):
        sys.stderr.write("cpu-memory-load takes two numbers: SECONDS PERCENT\n")
        return 2
    seconds, percent = map(int, argv)
    found = packages(list(os.sched_getaffinity(0)))
    before, began = counted(found), time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="cpu-memory-load-") as folder:
            results = load(seconds, percent, found, Path(folder), run)
    except OSError as error:
        sys.stderr.write(f"{error.filename or 'stress-ng'}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError) else 1
    took = round(time.monotonic() - began, 3)
    json.dump({"seconds": took, "before": before, "after": counted(found), "packages": results}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
