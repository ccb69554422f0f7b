"""cpu_share: work on a node gets a processor to itself: no quota, no cap, no hypervisor takes it away.

The probe does 50 ms of work with the highest priority, again and again, until it gets nearly a whole processor for it
or its time is up; the best try counts. Other work does not outrank it, a quota does.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.cpu_memory import Try, parse_cpu_share
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, Readings

CPU_SHARE = Metric("cpu_share", "%", Bad.LOW, 0.05, 0.0, "look for a quota or a power cap that the others do not have")

CPU_SHARE_MIN = LimitKey("cpu_share_min", "%")

SHARE = Probe("cpu_share", ("cpu-share", "20"), timeout=40.0)
_NAME = "cpu_share"
_REMEDY = (
    "look for a CPU quota (cpu.max of system.slice and user.slice), a power cap and a power-saving profile in the BMC "
    "or BIOS, and for throttling in the BMC's event log; lift it, then burn the node in again"
)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    tries = parse_cpu_share(readings.text(SHARE))
    limit = expected.limits[CPU_SHARE_MIN]
    best = max(one.share for one in tries)
    low = best * 100 < limit.value
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL if low else Verdict.PASS,
        code=Code.CPU_SHARE_LOW if low else Code.PASSED,
        cause=_cause(tries) if low else "work of the highest priority gets a whole processor",
        measured=limit.quantity(best * 100),
        expected=limit.at_least,
        remedy=_REMEDY if low else "",
        deterministic=False,
    )


def _cause(tries: tuple[Try, ...]) -> str:
    """Return the cause, with the other load on the processors: work that outranks the probe is no quota."""
    most = max(one.runnable for one in tries)
    others = f"{most} tasks at most wanted its {tries[0].cpus} processors"
    return f"work of the highest priority gets only a part of a processor, while {others}"


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    share = max(one.share for one in parse_cpu_share(readings.text(SHARE)))
    yield Sample(node, CPU_SHARE, 100 * share, population)


CHECK = Check(
    _NAME,
    (SHARE,),
    _judge,
    area=Area.NODE,
    metrics=(CPU_SHARE,),
    samples=_samples,
    limits=(CPU_SHARE_MIN,),
    causes=(Cause("identity"),),
    idle_only=True,
)
