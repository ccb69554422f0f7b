"""cpu_frequency: every processor reaches its clock when it is busy; one that does not makes all ranks wait for its own.

Idle processors clock down on purpose, so all are kept busy for two seconds, and turbostat reports each one's mean clock
while it was busy (APERF and MPERF, the processor's own counters).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.cpu_memory import CpuClock, parse_lscpu, parse_turbostat
from clusterctl_burnin.check import Area, Check, Expected
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import Limit, LimitKey
from clusterctl_burnin.probe import Probe, Readings
from clusterctl_burnin.probes.nvidia_smi import missing

CPU_CLOCK = Metric(
    "cpu_busy_clock",
    "MHz",
    Bad.LOW,
    0.05,
    0.0,
    "compare the node's BIOS profile, governor and power caps with the others'",
)

CPU_BUSY_CLOCK_MIN = LimitKey("cpu_busy_clock_min", "MHz")

_BUSY = 'for cpu in $(seq "$(nproc)"); do while :; do :; done & pids="$pids $!"; done; sleep 2; kill $pids; wait'
_COLUMNS = "Package,CPU,Bzy_MHz"
TURBOSTAT = Probe(
    "turbostat",
    ("turbostat", "--quiet", "--show", _COLUMNS, "--out", "/dev/stdout", "sh", "-c", _BUSY),
    timeout=30.0,
    role="burnin_tools",
)
LSCPU = Probe("lscpu", ("lscpu", "--json"))
_NAME = "cpu_frequency"
_ONE = (
    "look for throttling of this processor in the BMC's event log (a voltage regulator, a heat sink, a power supply), "
    "power the machine off and on, then replace the processor"
)
_ALL = (
    "set the BIOS's system profile to performance and the governor to performance (cpupower frequency-info), "
    "check in the BMC that no power cap is set and all power supplies work, then power the machine off and on"
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    clocks, limit = parse_turbostat(readings.text(TURBOSTAT)), expected.limits[CPU_BUSY_CLOCK_MIN]
    online = parse_lscpu(readings.text(LSCPU)).online
    measured = {clock.cpu for clock in clocks}
    yield from missing(_NAME, len(measured & online), len(online), "CPUs")
    slow = [clock for clock in clocks if clock.busy_mhz < limit.value]
    yield from _slow(slow, clocks, limit)
    if not slow and measured >= online:
        least = min(clock.busy_mhz for clock in clocks)
        cause = f"all {len(online)} CPUs reach their clock"
        yield passed(_NAME, cause, measured=limit.quantity(least), expected=limit.at_least)


def _slow(slow: Sequence[CpuClock], clocks: Sequence[CpuClock], limit: Limit) -> Iterator[Finding]:
    """Yield one finding of the node where all its packages are slow, else one of each slow package."""
    totals = Counter(clock.package for clock in clocks)
    by_package = {package: [clock for clock in slow if clock.package == package] for package in sorted(totals)}
    if slow and all(by_package.values()):
        yield _finding("node", slow, len(clocks), limit, _ALL)
        return
    for package, its in by_package.items():
        if its:
            yield _finding(f"cpu {package}", its, totals[package], limit, _ONE)


def _finding(subject: str, slow: Sequence[CpuClock], total: int, limit: Limit, remedy: str) -> Finding:
    lowest = min(clock.busy_mhz for clock in slow)
    cause = f"{len(slow)} of {total} busy processors stay at a low clock"
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.CPU_CLOCK_LOW,
        subject=subject,
        cause=cause,
        measured=limit.quantity(lowest),
        expected=limit.at_least,
        remedy=remedy,
    )


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    slowest: dict[int, float] = {}
    for clock in parse_turbostat(readings.text(TURBOSTAT)):
        slowest[clock.package] = min(clock.busy_mhz, slowest.get(clock.package, clock.busy_mhz))
    for package, mhz in sorted(slowest.items()):
        yield Sample(node, CPU_CLOCK, mhz, population, f"cpu {package}")


CHECK = Check(
    _NAME,
    (TURBOSTAT, LSCPU),
    _judge,
    area=Area.PROCESSOR,
    metrics=(CPU_CLOCK,),
    samples=_samples,
    limits=(CPU_BUSY_CLOCK_MIN,),
    idle_only=True,
)
