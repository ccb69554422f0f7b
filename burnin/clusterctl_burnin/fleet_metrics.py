"""The figures of a node's checks, and of its loads of one node, that are compared over the fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.host.cpu_memory import parse_cpu_share, parse_turbostat
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.checks.cpu_frequency import TURBOSTAT
from clusterctl_burnin.checks.cpu_share import SHARE
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.probe import Readings, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import read
from clusterctl_burnin.registry import NODE_LOADS

_COOL = "look at the machine's fans, air baffles and inlet, then at the GPU's heat sink"
GPU_TEMPERATURE = Metric("gpu_temperature", "°C", Bad.HIGH, 0.0, 10.0, _COOL)
GPU_MEMORY_TEMPERATURE = Metric("gpu_memory_temperature", "°C", Bad.HIGH, 0.0, 10.0, _COOL)
CPU_CLOCK = Metric(
    "cpu_busy_clock",
    "MHz",
    Bad.LOW,
    0.05,
    0.0,
    "compare the node's BIOS profile, governor and power caps with the others'",
)
CPU_SHARE = Metric("cpu_share", "%", Bad.LOW, 0.05, 0.0, "look for a quota or a power cap that the others do not have")
OF_LOADS = tuple(metric for load in NODE_LOADS.values() for metric in load.metrics)
METRICS = {metric.name: metric for metric in (GPU_TEMPERATURE, GPU_MEMORY_TEMPERATURE, CPU_CLOCK, CPU_SHARE, *OF_LOADS)}


def samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    """What the node's probes tell; of a probe that told nothing its check says so, and here it is left out."""
    for source in (_gpus, _clocks, _share, *(load.samples for load in NODE_LOADS.values())):
        try:
            yield from tuple(source(node, population, readings))
        except (UnmeasuredError, ParseError):
            continue


def _gpus(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    told: tuple[tuple[Metric, Callable[[GpuReading], float | None]], ...] = (
        (GPU_TEMPERATURE, lambda gpu: gpu.temperature),
        (GPU_MEMORY_TEMPERATURE, lambda gpu: gpu.memory_temperature),
    )
    for gpu in read(readings).gpus:
        for metric, value_of in told:
            value = value_of(gpu)
            if value is not None:
                yield Sample(node, metric, value, population, gpu.subject, gpu.serial or "")


def _clocks(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    slowest: dict[int, float] = {}
    for clock in parse_turbostat(readings.text(TURBOSTAT)):
        slowest[clock.package] = min(clock.busy_mhz, slowest.get(clock.package, clock.busy_mhz))
    for package, mhz in sorted(slowest.items()):
        yield Sample(node, CPU_CLOCK, mhz, population, f"cpu {package}")


def _share(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    share = max(one.share for one in parse_cpu_share(readings.text(SHARE)))
    yield Sample(node, CPU_SHARE, 100 * share, population)
