"""How fast the check kernel_log judges a log, compared with `grep -c` over the same file.

    python -m benchmarks.kernel_log [--mib 12]

The log is made of lines as real ones have them, each with numbers of its own; one in `--bad` lines is an Xid.
Prints MB of text a second of processor time for both, best of three, and for reading line by line, which must find the
same Xids.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from clusterctl.fleet.finding import Origin
from clusterctl.fleet.hardware.sku import RootDisk, Sku
from clusterctl.fleet.node import Serial
from clusterctl.formats.host.kernel_log import parse_dmesg, xids
from clusterctl_burnin.check import Expected
from clusterctl_burnin.checks import kernel_log
from clusterctl_burnin.kernel_log.xids import gpu_errors
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.probe import ProbeResult, Readings, Status

LINES = (
    ("info", "mlx5_core 0000:{bus:02x}:00.0: firmware version: 28.39.{n}"),
    ("info", "pci 0000:{bus:02x}:00.0: BAR 0: assigned [mem {n:#014x}-{m:#014x} 64bit pref]"),
    ("info", "IPv6: ADDRCONF(NETDEV_CHANGE): ib{d}: link becomes ready"),
    ("warn", "perf: interrupt took too long ({n} > {m}), lowering kernel.perf_event_max_sample_rate to {n}"),
    ("err", "mlx5_core 0000:{bus:02x}:00.0: mlx5_cmd_out_err:808:(pid {n}): ACCESS_REG(0x805) op_mod(0x1) failed"),
    ("info", "docker0: port {d}(veth{n:07x}) entered forwarding state"),
    ("info", 'audit: type=1400 audit(1767323045.{d}:{n}): apparmor="STATUS" operation="profile_load" pid={m}'),
    ("warn", "pcieport 0000:{bus:02x}:01.0: AER: Corrected error received: 0000:{bus:02x}:00.0"),
)  # fmt: skip
XID = "NVRM: Xid (PCI:0000:{bus:02x}:00): 13, pid={n}, name=python3, Graphics Exception: ESR {m:#x}"
START = datetime(2026, 1, 1, tzinfo=UTC)


def log(size: int, bad: int) -> str:
    chance = random.Random(size)
    lines = ["kern  :info  : [Thu Jan  1 00:00:00 2026] Linux version 6.1.0-28-amd64"]
    length = 0
    while length < size:
        level, text = ("warn", XID) if chance.randrange(bad) == 0 else chance.choice(LINES)
        numbers = {"bus": chance.randrange(8) * 16 + 11, "d": chance.randrange(8)}
        text = text.format(n=chance.randrange(1, 10**6), m=chance.randrange(1, 10**6), **numbers)
        at = f"{chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}"
        lines.append(f"kern  :{level:6}: [Thu Jan  1 {at} 2026] {text}")
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


def best(work: Callable[[], object]) -> float:
    """Seconds of processor time of this process and its children, the best of three: others may be at work here."""
    times = []
    for _ in range(3):
        began = used()
        work()
        times.append(used() - began)
    return min(times)


def used() -> float:
    """Return the processor time of this process and its children, in seconds."""
    usages = [resource.getrusage(scope) for scope in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def expected() -> Expected:
    sku = Sku("x", "x", "x", 0, "", 0, "", 0, 2, 1, 0, RootDisk(), "h100-sxm-ndr400")
    return Expected("n", Serial("s"), sku, shipped_limits("h100-sxm-ndr400"), START, START)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=12, help="the probe keeps less than 16 MiB")
    parser.add_argument("--bad", type=int, default=2000)
    options = parser.parse_args()
    text = log(options.mib << 20, options.bad)
    probe = kernel_log.DMESG
    result = ProbeResult(probe.name, probe.argv, Status.OK, 0, text, "", START, 0.1)
    readings = Readings("n", "b", Origin.SIMULATED, START, START, {probe.name: result})
    known = expected()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "dmesg"
        file.write_text(text)
        argv = ["grep", "-cE", "Xid|SXid|EDAC|AER|lockup|oom-killer", str(file)]
        grep = best(lambda: subprocess.run(argv, check=True, stdout=subprocess.PIPE))
    judged = best(lambda: tuple(kernel_log.CHECK.judge(readings, known)))
    plain = best(lambda: gpu_errors(xids(parse_dmesg(text))))
    found = kernel_log.CHECK.findings(readings, known)
    wanted = gpu_errors(xids(parse_dmesg(text)))
    if [f.measured for f in found if f.measured.startswith("Xid")] != [f"Xid {e.first.code}" for e in wanted]:
        raise SystemExit("the check and a reading line by line find different Xids")
    size = len(text.encode()) / 1e6
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {size:.0f} MB, {text.count(chr(10))} lines")
    print("of one processor: ", end="")
    print(f"check {size / judged:.0f} MB/s; grep -c {size / grep:.0f} MB/s; line by line {size / plain:.0f} MB/s")
    print(f"{len(found)} findings, {sum(e.times for e in wanted)} Xids")


if __name__ == "__main__":
    main()
