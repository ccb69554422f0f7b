"""gpu_pcie: each GPU and its slot can reach the full PCIe speed, and the link repeats few packets.

The check judges the highest generation that GPU and slot reach together: an idle GPU lowers the present one on purpose.
Counters run since the GPU's reset, so many repeated packets are a warning: when they came is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, known
from clusterctl_burnin.limits.limit import Limit, LimitKey
from clusterctl_burnin.probe import Readings, UnmeasuredError, seconds_between
from clusterctl_burnin.probes.lspci import PCIE_SPEED_MIN
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, at_least, each_or, each_since, risen

GPU_PCIE_REPLAYS_MAX = LimitKey(
    "gpu_pcie_replays_max",
    "packets since the GPU's reset",
    default=1000,
    source="own choice; GPUs of healthy recorded servers show 0 to 67",
)
GPU_PCIE_REPLAY_RATE_MAX = LimitKey(
    "gpu_pcie_replay_rate_max",
    "per minute",
    default=8,
    source="NVIDIA DCGM's health watch of PCIe, which warns of more than 8 replays in a minute",
)
_NAME = "gpu_pcie"
_SPEEDS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
"""GT/s per lane by generation (PCI Express Base Specification 6.0)."""
_SLOT = "power off, reseat the GPU and its riser or cable, check the slot's speed in the BIOS, then replace the GPU"
_WATCH = "reseat the GPU or its riser when the machine is opened next; replace what the repeated packets move with"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    speed, replays = expected.limits[PCIE_SPEED_MIN], expected.limits[GPU_PCIE_REPLAYS_MAX]

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        yield from _slow(gpu, speed)
        yield from _repeats(gpu, replays)

    return each_or(
        _NAME, readings, expected, bad, passed(_NAME, "all GPUs reach their PCIe speed and repeat few packets")
    )


def _slow(gpu: GpuReading, limit: Limit) -> Iterator[Finding]:
    generation = known(gpu.pcie_generation_max, "the PCIe generation that GPU and slot reach")
    if generation not in _SPEEDS:
        raise UnmeasuredError(f"PCIe generation {generation} is unknown", code=Code.NOT_REPORTED)
    if _SPEEDS[generation] < limit.value:
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.PCIE_LINK_POOR,
            subject=gpu.subject,
            cause=f"GPU and slot reach PCIe generation {generation} at most",
            measured=limit.quantity(_SPEEDS[generation]),
            expected=limit.at_least,
            remedy=_SLOT,
            serial=gpu.serial or "",
        )


def _repeats(gpu: GpuReading, limit: Limit) -> Iterator[Finding]:
    replays, rollovers = known(gpu.pcie_replays, "the PCIe replays"), gpu.pcie_rollovers or 0
    if replays > limit.value or rollovers:
        again = f", and {rollovers} times in a row" if rollovers else ""
        yield Finding(
            check=_NAME,
            verdict=Verdict.WARN,
            code=Code.GPU_PCIE_REPLAYS,
            subject=gpu.subject,
            cause=f"the PCIe link repeated {replays} packets since the GPU's reset{again}",
            measured=limit.quantity(replays),
            expected=limit.at_most,
            remedy=_WATCH,
            serial=gpu.serial or "",
        )


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    limit, seconds = expected.limits[GPU_PCIE_REPLAY_RATE_MAX], seconds_between(before, after, NVIDIA_SMI)

    def added(was: GpuReading, gpu: GpuReading) -> Iterator[Finding]:
        counted = (was.pcie_replays, gpu.pcie_replays, "the PCIe replays")
        count = at_least(*counted)
        if count:
            many = exceeds(count, seconds, limit.value / 60)
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL if many else Verdict.WARN,
                code=Code.GPU_PCIE_REPLAYS,
                subject=gpu.subject,
                cause=f"the PCIe link repeated {count} packets in {seconds:.0f} s",
                measured=limit.quantity(count * 60 / seconds),
                expected=limit.at_most,
                remedy=_SLOT if many else _WATCH,
                serial=gpu.serial or "",
            )
        risen(*counted)  # raises where they were reset: there may have been more

    return each_since(_NAME, before, after, expected, added)


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.PCIE,
    causes=(Cause("nvidia_driver"), Cause("gpu_count", unmeasured=True)),
    limits=(PCIE_SPEED_MIN, GPU_PCIE_REPLAYS_MAX, GPU_PCIE_REPLAY_RATE_MAX),
    watch=Watch((NVIDIA_SMI,), _judge_load),
)
