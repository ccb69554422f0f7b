"""gpu_temperature: no idle GPU is much hotter than its neighbours. Against a fixed limit all are held by gpu_idle.

What they breathe is the same; one that is hotter by itself has a loose heat sink, a blocked duct or a failing pump, and
will slow down under load. While a load runs, the memory of each GPU is held to its limit.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import at_most
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, known
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.load_samples import LOAD_SAMPLES, require_all_sampled, sampled
from clusterctl_burnin.probes.nvidia_smi import GPU_MEMORY_TEMPERATURE_MAX, NVIDIA_SMI, each_or, read

GPU_TEMPERATURE_ABOVE_OTHERS_MAX = LimitKey("gpu_temperature_above_others_max", "°C")

_NAME = "gpu_temperature"
_MEMORY = "memory_temperature"
_REMEDY = "compare the GPU's heat sink, air duct and coolant flow with its neighbours'; then replace the GPU"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[GPU_TEMPERATURE_ABOVE_OTHERS_MAX]
    temperatures = {gpu.index: gpu.temperature for gpu in read(readings).gpus if gpu.temperature is not None}

    def hot(gpu: GpuReading) -> Iterator[Finding]:
        celsius = known(gpu.temperature, "the GPU's temperature")
        others = [value for index, value in temperatures.items() if index != gpu.index]
        if others and celsius - (middle := statistics.median(others)) > limit.value:
            cause, serial = "the idle GPU is much hotter than the others of the node", gpu.serial or ""
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_HOTTER_THAN_OTHERS,
                subject=gpu.subject,
                cause=cause,
                measured=limit.quantity(celsius),
                expected=at_most(middle + limit.value, limit.unit),
                remedy=_REMEDY,
                serial=serial,
                deterministic=False,
            )

    return each_or(_NAME, readings, expected, hot, passed(_NAME, "no GPU is much hotter than the others"))


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Judge the highest temperature of each GPU's memory; some GPUs report none."""
    del before
    if not expected.sku.gpu_count:
        return
    limit = expected.limits[GPU_MEMORY_TEMPERATURE_MAX]
    serials = {str(gpu.index): gpu.serial or "" for gpu in read(after).gpus}
    samples = sampled(after)
    for one in samples.highs("gpu"):
        if one.gauge == _MEMORY and one.high > limit.value:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_TOO_HOT,
                subject=f"gpu {one.part}",
                cause=f"the GPU's memory was too hot in second {one.at:g}",
                measured=limit.quantity(one.high),
                expected=limit.at_most,
                remedy=_REMEDY,
                serial=serials.get(one.part, ""),
                deterministic=False,
            )
    require_all_sampled(samples, "gpu")


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(Cause("nvidia_driver"), Cause("sensor_plausible", same_part=True)),
    limits=(GPU_TEMPERATURE_ABOVE_OTHERS_MAX,),
    idle_only=True,
    watch=Watch((LOAD_SAMPLES, NVIDIA_SMI), _judge_load, limits=(GPU_MEMORY_TEMPERATURE_MAX,)),
)
