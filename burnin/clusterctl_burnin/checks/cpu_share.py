"""cpu_share: work on a node gets a processor to itself: no quota, no cap, no hypervisor takes it away.

The probe does 50 ms of work with the highest priority, again and again, until it gets nearly a whole processor for it
or its time is up; the best try counts. Other work of that priority, or in another cgroup, can take its turn. That is no
defect of the node, and `cpu_foreign_load` reports it. So a low share counts as far as the processors were idle, or a
hypervisor had them, while the work waited, or a quota held it back. A quota of less than the limit fails on any node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.cpu_memory import CpuQuota, CpuShare, parse_cpu_share
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError

CPU_SHARE = Metric("cpu_share", "%", Bad.LOW, 0.05, 0.0, "look for a quota or a power cap that the others do not have")

CPU_SHARE_MIN = LimitKey("cpu_share_min", "%")

SHARE = Probe("cpu_share", ("cpu-share", "20"), timeout=40.0)
_NAME = "cpu_share"
_WHOLE = "work of the highest priority gets a whole processor"
_PART = "work of the highest priority gets a part of a processor only"
_AGAIN = "then burn the node in again"
_REMEDY = (
    "look for a CPU quota (cpu.max of system.slice and user.slice), a power cap and a power-saving profile in the BMC "
    f"or BIOS, and for throttling in the BMC's event log; lift it, {_AGAIN}"
)
_HYPERVISOR = f"give the virtual machine processors of its own in the hypervisor, {_AGAIN}"
_FREE = "end the other work on the node (see cpu_foreign_load), and run the burn-in again"


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What the processors did while the work of all tries waited, each as a share of that time: 0 to 1.

    waited  seconds per second of the tries
    """

    waited: float
    throttled: float
    stolen: float
    idle: float

    @property
    def withheld(self) -> float:
        """The share of the tries' time in which the work had no processor though other work did not have it."""
        return self.waited * min(1.0, max(self.throttled, self.stolen + self.idle))


def _waiting(found: CpuShare) -> _Waiting | None:
    """Return None where a try does not report what the processors did.

    While the work runs, all other processors may be idle: idle time beyond that was while it waited.
    """
    seconds = waited = throttled = stolen = idle = 0.0
    for one in found.tries:
        if one.seconds is None or one.idle is None or one.stolen is None:
            return None
        seconds, stolen, throttled = seconds + one.seconds, stolen + one.stolen, throttled + one.throttled
        waited += one.seconds * max(0.0, 1 - one.share)
        idle += one.idle - one.seconds * one.share * (found.cpus - 1)
    if not seconds or not waited:
        return _Waiting(0.0, 0.0, 0.0, 0.0)
    on_all = waited * found.cpus
    return _Waiting(waited / seconds, min(1.0, throttled / waited), stolen / on_all, min(1.0, max(0.0, idle / on_all)))


def _available(found: CpuShare) -> float:
    """Return the share of a processor that the node has for its work, 1 for a whole one."""
    waiting, quota = _waiting(found), _tightest(found)
    share = found.best if waiting is None else max(found.best, 1 - waiting.withheld)
    return share if quota is None else min(share, quota.cpus)


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    found = parse_cpu_share(readings.text(SHARE))
    limit = expected.limits[CPU_SHARE_MIN]
    available = limit.quantity(_available(found) * 100)
    if available.value < limit.value:
        cause, remedy = _explained(found, limit.value / 100)
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.CPU_SHARE_LOW,
            cause=cause,
            measured=available,
            expected=limit.at_least,
            remedy=remedy,
            deterministic=False,
        )
    elif found.best * 100 >= limit.value:
        yield passed(_NAME, _WHOLE, measured=available, expected=limit.at_least)
    elif found.quotas is None:
        raise UnmeasuredError(f"{_PART} {_others(found)}, and its CPU quota cannot be read", remedy=_FREE)
    else:
        cause = f"nothing but other work kept the processors from work of the highest priority, {_others(found)}"
        yield passed(_NAME, cause, measured=available, expected=limit.at_least)


def _explained(found: CpuShare, least: float) -> tuple[str, str]:
    """Return the cause and remedy of a low share. Raises `UnmeasuredError` where other work may be the cause."""
    waiting, quota = _waiting(found), _tightest(found)
    if quota is not None and quota.cpus < least:
        return f"the {_described(quota)}", _without(quota)
    if waiting is None and max(one.runnable for one in found.tries) > found.cpus:
        raise UnmeasuredError(f"{_PART} {_others(found)}, and what these did meanwhile is unknown", remedy=_FREE)
    if waiting is None:
        return f"{_PART} {_others(found)}", _REMEDY
    if quota is not None and waiting.throttled >= max(waiting.stolen, waiting.idle):
        return f"{_PART}: the {_described(quota)}, which was used up", _without(quota)
    if waiting.stolen >= waiting.idle:
        return f"{_PART}: a hypervisor had the processors for {waiting.stolen:.0%} of the wait", _HYPERVISOR
    return f"{_PART}, though its processors were idle for {waiting.idle:.0%} of the wait", _REMEDY


def _others(found: CpuShare) -> str:
    return f"while {max(one.runnable for one in found.tries)} tasks at most wanted its {found.cpus} processors"


def _tightest(found: CpuShare) -> CpuQuota | None:
    return min(found.quotas or (), key=lambda one: one.cpus, default=None)


def _described(quota: CpuQuota) -> str:
    return f"cgroup {quota.cgroup} of the work has a CPU quota of {quota.cpus:g} processors"


def _without(quota: CpuQuota) -> str:
    return f"remove the CPU quota of {quota.cgroup} (CPUQuota of its systemd unit, cpu.max), {_AGAIN}"


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    yield Sample(node, CPU_SHARE, 100 * _available(parse_cpu_share(readings.text(SHARE))), population)


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
