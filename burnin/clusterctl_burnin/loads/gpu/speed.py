"""How fast each GPU was: against the floors of the limits file, and against the fastest of its node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Bound, Quantity, at_least
from clusterctl.formats.nvidia.gpu_load import LoadedGpu
from clusterctl_burnin.limits.limit import LimitKey, Limits

GPU_GEMM_BF16_MIN = LimitKey("gpu_gemm_bf16_min", "TFLOP/s")
GPU_GEMM_FP8_MIN = LimitKey("gpu_gemm_fp8_min", "TFLOP/s")
GPU_MEMORY_RATE_MIN = LimitKey("gpu_memory_rate_min", "GB/s")
GPU_HOST_TO_DEVICE_MIN = LimitKey("gpu_host_to_device_min", "GB/s")
GPU_DEVICE_TO_HOST_MIN = LimitKey("gpu_device_to_host_min", "GB/s")
GPU_PEER_MIN = LimitKey("gpu_peer_min", "GB/s")
GPU_BELOW_BEST_MAX = LimitKey("gpu_below_best_max", "%")

_CLOCK = "compare its clocks and power limit with the others' (nvidia-smi -q -d CLOCK,POWER), reset it, then replace it"
_PCIE = "check width and speed of its PCIe link (nvidia-smi -q -d PCIE), reseat the GPU tray, then replace the GPU"
_NVLINK = "check its NVLinks (nvidia-smi nvlink -s) and the fabric manager, then replace the GPU"


@dataclass(frozen=True, slots=True)
class Measure:
    """`figure` of gpu-load, the limit that is its floor, and its name in reports. `phase` of the program measures it.

    compared: GPUs of one node have no reason to differ in it; ways to the host may.
    """

    figure: str
    limit: LimitKey
    name: str
    phase: str
    remedy: str
    compared: bool = False


MEASURES = (
    Measure("gemm_bf16_tflops", GPU_GEMM_BF16_MIN, "BF16 product", "bf16", _CLOCK, compared=True),
    Measure("gemm_fp8_tflops", GPU_GEMM_FP8_MIN, "FP8 product", "fp8", _CLOCK, compared=True),
    Measure("memory_gb_per_s", GPU_MEMORY_RATE_MIN, "copy inside its memory", "memory", _CLOCK, compared=True),
    Measure("host_to_device_gb_per_s", GPU_HOST_TO_DEVICE_MIN, "copy from the host", "host", _PCIE),
    Measure("device_to_host_gb_per_s", GPU_DEVICE_TO_HOST_MIN, "copy to the host", "host", _PCIE),
    Measure("peer_gb_per_s", GPU_PEER_MIN, "copy to its neighbour", "peer", _NVLINK),
)


LIMITS = (*(measure.limit for measure in MEASURES), GPU_BELOW_BEST_MAX)


@dataclass(frozen=True, slots=True)
class GpuFault:
    """What is wrong with one GPU under load."""

    code: Code
    cause: str
    measured: Quantity | str
    expected: Bound | str
    remedy: str


def slow(gpu: LoadedGpu, gpus: Sequence[LoadedGpu], limits: Limits) -> Iterator[GpuFault]:
    """Yield slow figures in order of `MEASURES`; below the floor outranks below the best."""
    for measure in MEASURES:
        value = gpu.figures.get(measure.figure)
        if value is None:
            continue
        floor, share = limits[measure.limit], limits[GPU_BELOW_BEST_MAX]
        best = max((other.figures.get(measure.figure, 0.0) for other in gpus), default=0.0)
        if value < floor.value:
            cause, least = f"the GPU's {measure.name} is slow", floor.at_least
        elif measure.compared and value < (least_of := best * (1 - share.value / 100)):
            cause = (
                f"the GPU's {measure.name} is more than {share} % slower than that of the node's fastest ({best:.4g})"
            )
            least = at_least(least_of, floor.unit)
        else:
            continue
        yield GpuFault(Code.GPU_SLOW, cause, floor.quantity(value), least, measure.remedy)
