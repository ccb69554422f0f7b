"""gpu_load: all GPUs of a node multiply at once; how fast, how hot, and whether they compute the same.

The program is node/programs/gpu_load.py with gpu_load_worker.py. The worker uses PyTorch in the Python that the limits
file names. The program has run on one H100 and, with several workers, on processors.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding
from clusterctl.formats.nvidia.gpu_load import parse_gpu_load
from clusterctl_burnin.check import Area, Expected
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import Limits
from clusterctl_burnin.loads.gpu.findings import NAME, findings
from clusterctl_burnin.loads.gpu.speed import LIMITS
from clusterctl_burnin.loads.node_load import NodeLoad
from clusterctl_burnin.probe import Probe, Readings
from clusterctl_burnin.probes.nvidia_smi import GPU_MEMORY_TEMPERATURE_MAX

ASIDE = 300.0
"""Seconds for all but the load: PyTorch's start, and eight GPUs' copies one after the other."""
KILLING = 20.0
"""Seconds that the program is left for its own end, before it is killed from outside."""
_COOL = "check the machine's fans, air baffles and inlet, then the GPU's heat sink"
_CLOCK = "compare power limit, clocks and temperature of the node's GPUs with the others'"
GEMM = Metric("gpu_gemm_bf16", "TFLOP/s", Bad.LOW, 0.03, 0.0, _CLOCK)
MEMORY = Metric("gpu_memory_rate", "GB/s", Bad.LOW, 0.03, 0.0, _CLOCK)
HEAT = Metric("gpu_load_temperature", "°C", Bad.HIGH, 0.0, 8.0, _COOL)
_FIGURES = {GEMM: "gemm_bf16_tflops", MEMORY: "memory_gb_per_s", HEAT: "temperature_max_c"}


def _probes(limits: Limits, seconds: int | None) -> tuple[Probe, ...]:
    """Return the probe: `seconds` of the BF16 product, as long of all else together."""
    method = limits.methods.gpu_load
    load = method.seconds if seconds is None else seconds
    limit = 3 * load + ASIDE
    argv = ["gpu-load", "--python", method.python, "--seconds", str(load), "--matrix-size", str(method.matrix_size)]
    argv += ["--buffer-mib", str(method.buffer_mib), "--limit", f"{limit:g}"]
    return (Probe(NAME, tuple(argv), timeout=limit + KILLING),)


_ANY = Probe(NAME, ("gpu-load",), timeout=ASIDE)
"""By its name it is found, whatever it was run with."""


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    yield from findings(parse_gpu_load(readings.text(_ANY)), expected)


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    for gpu in parse_gpu_load(readings.text(_ANY)).gpus:
        for metric, figure in _FIGURES.items():
            if figure in gpu.figures:
                yield Sample(node, metric, gpu.figures[figure], population, gpu.subject, gpu.serial)


LOAD = NodeLoad(
    NAME,
    _probes,
    _judge,
    tuple(_FIGURES),
    _samples,
    (*LIMITS, GPU_MEMORY_TEMPERATURE_MAX),
    needs=frozenset({Area.GPU}),
    about=frozenset({Area.GPU}),
)
