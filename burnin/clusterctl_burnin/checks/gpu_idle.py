"""gpu_idle: nothing runs on the GPUs and they are cool, so that the next measurements are valid."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import GPU_MEMORY_TEMPERATURE_MAX, NVIDIA_SMI, each_or, read

_COOL = "check the machine's fans, air baffles and inlet, then the GPU's heat sink"
GPU_TEMPERATURE = Metric("gpu_temperature", "°C", Bad.HIGH, 0.0, 10.0, _COOL)
GPU_MEMORY_TEMPERATURE = Metric("gpu_memory_temperature", "°C", Bad.HIGH, 0.0, 10.0, _COOL)

GPU_IDLE_MEMORY_MAX = LimitKey("gpu_idle_memory_max", "MiB")
GPU_TEMPERATURE_MAX = LimitKey("gpu_temperature_max", "°C")

_NAME = "gpu_idle"
_COOL = "check that the fans run, that no blanking panel is missing and that the inlet air is cold"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    def bad(gpu: GpuReading) -> Iterator[Finding]:
        yield from _busy(gpu, expected.limits)
        yield from _hot(gpu, expected.limits)

    return each_or(_NAME, readings, expected, bad, passed(_NAME, "all GPUs are idle and cool"))


def _busy(gpu: GpuReading, limits: Limits) -> Iterator[Finding]:
    limit = limits[GPU_IDLE_MEMORY_MAX]
    used = known(gpu.memory_used, "the GPU's memory use")
    names = sorted({p.name or f"pid {p.pid}" for p in known(gpu.processes, "the GPU's processes")})
    if names or used > limit.value:
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.GPU_BUSY,
            subject=gpu.subject,
            cause=f"the GPU runs {', '.join(names) or 'a process that nvidia-smi does not name'}",
            measured=limit.quantity(used),
            expected=limit.at_most,
            remedy="end the processes on the GPU, or reboot the node, and run the burn-in again",
            serial=gpu.serial or "",
            deterministic=False,
        )


def _hot(gpu: GpuReading, limits: Limits) -> Iterator[Finding]:
    """Yield hot GPUs. GDDR memory has no temperature that the driver reads; HBM has."""
    readings = [("GPU", known(gpu.temperature, "the GPU's temperature"), limits[GPU_TEMPERATURE_MAX])]
    if gpu.has_hbm or gpu.memory_temperature is not None:
        memory = known(gpu.memory_temperature, "the memory's temperature")
        readings.append(("GPU's memory", memory, limits[GPU_MEMORY_TEMPERATURE_MAX]))
    for what, celsius, limit in readings:
        if celsius > limit.value:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_TOO_HOT,
                subject=gpu.subject,
                cause=f"the {what} is hot while idle",
                measured=limit.quantity(celsius),
                expected=limit.at_most,
                remedy=_COOL,
                serial=gpu.serial or "",
            )


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    for gpu in read(readings).gpus:
        for metric, value in ((GPU_TEMPERATURE, gpu.temperature), (GPU_MEMORY_TEMPERATURE, gpu.memory_temperature)):
            if value is not None:
                yield Sample(node, metric, value, population, gpu.subject, gpu.serial or "")


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    metrics=(GPU_TEMPERATURE, GPU_MEMORY_TEMPERATURE),
    samples=_samples,
    causes=(Cause("nvidia_driver"), Cause("sensor_plausible", same_part=True)),
    limits=(
        GPU_IDLE_MEMORY_MAX,
        GPU_TEMPERATURE_MAX,
        GPU_MEMORY_TEMPERATURE_MAX,
    ),
    idle_only=True,
)
