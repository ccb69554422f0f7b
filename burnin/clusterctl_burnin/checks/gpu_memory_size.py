"""gpu_memory_size: each GPU has the memory of the limit, of its name, and of the node's other GPUs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_least
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or, read

GPU_MEMORY_MIN = LimitKey(
    "gpu_memory_min",
    "MiB",
    default=0,
    source="0: no figure for all hardware; the GPU's name and the node's other GPUs show how much is usual",
)
_NAME = "gpu_memory_size"
_IN_NAME = re.compile(r"\b(\d{2,3})GB\b")
_WITH_CPU = re.compile(r"\bG[HB]\d")
_MIB_PER_GB = 1e9 / 2**20
_USABLE = 0.97
"""V100 32GB shows 32510 MiB, A100 40GB 40536, H100 80GB 81559: more than the gigabytes (10**9 bytes) of the name."""


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[GPU_MEMORY_MIN].value
    sizes = Counter(gpu.memory_total for gpu in read(readings).gpus if gpu.memory_total is not None)
    usual = max(sizes, key=lambda size: (sizes[size], size), default=0.0)

    def small(gpu: GpuReading) -> Iterator[Finding]:
        size, least = known(gpu.memory_total, "the GPU's memory"), max(limit, _by_name(gpu), _USABLE * usual)
        if size < least:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_MEMORY_SMALL,
                subject=gpu.subject,
                cause="the GPU has less memory than it should",
                measured=Quantity(size, "MiB"),
                expected=at_least(least, "MiB"),
                remedy="reset the GPU and run the burn-in again; if memory is still missing, replace the GPU",
                serial=gpu.serial or "",
            )

    return each_or(
        _NAME, readings, expected, small, passed(_NAME, "all GPUs have their memory", measured=Quantity(usual, "MiB"))
    )


def _by_name(gpu: GpuReading) -> float:
    """Return the least size that the GPU's name allows; the name of a GH200 has the processor's memory."""
    match = None if _WITH_CPU.search(gpu.model or "") else _IN_NAME.search(gpu.model or "")
    return int(match[1]) * _MIB_PER_GB * _USABLE if match else 0.0


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(Cause("nvidia_driver"), Cause("gpu_count", unmeasured=True)),
    limits=(GPU_MEMORY_MIN,),
)
