"""gpu_settings: no GPU is divided, closed to programs, or held below its power limit.

A GPU in MIG mode shows its slices only. A lowered power limit slows one GPU down, and all ranks wait for it. A site
that caps its GPUs on purpose names the share in its limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.limits.limit import Limit, LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or

GPU_POWER_LIMIT_MIN = LimitKey(
    "gpu_power_limit_min",
    "% of the GPU's default",
    default=100,
    source="own choice: the default limit is the one that the GPU's published figures are measured with",
)
_NAME = "gpu_settings"
_NO_MIG = "Disabled"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[GPU_POWER_LIMIT_MIN]

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        yield from _mig(gpu)
        yield from _compute_mode(gpu)
        yield from _power(gpu, limit)

    return each_or(
        _NAME, readings, expected, bad, passed(_NAME, "no GPU is divided, closed, or held below its power limit")
    )


def _mig(gpu: GpuReading) -> Iterator[Finding]:
    """Yield wrong MIG modes. GPUs without MIG report `N/A`: the model decides, not the value."""
    if not gpu.can_mig:
        return
    now, later = known(gpu.mig, "the MIG mode"), known(gpu.mig_after_reset, "the MIG mode after a reset")
    if (now, later) != (_NO_MIG, _NO_MIG):
        cause = "the GPU is divided (MIG)" if now != _NO_MIG else "the GPU will be divided (MIG) after its next reset"
        remedy = "run nvidia-smi -mig 0 on the node and reset the GPU, then run the burn-in again"
        yield _finding(gpu, Code.GPU_MIG_ON, cause, remedy)


def _compute_mode(gpu: GpuReading) -> Iterator[Finding]:
    mode = known(gpu.compute_mode, "the compute mode")
    if mode == "Default":
        return
    verdict = Verdict.FAIL if mode == "Prohibited" else Verdict.WARN
    remedy = "run nvidia-smi -c 0 on the node"
    cause = f"the GPU's compute mode is {mode}"
    yield _finding(gpu, Code.GPU_COMPUTE_MODE, cause, remedy, verdict)


def _power(gpu: GpuReading, limit: Limit) -> Iterator[Finding]:
    now, usual = known(gpu.power.limit, "the power limit"), known(gpu.power.limit_default, "the default power limit")
    share = 100 * now / usual if usual > 0 else 0.0
    if share < limit.value:
        cause = f"the GPU's power limit is {now:g} W; its default is {usual:g} W"
        remedy = (
            f"run nvidia-smi -pl {usual:g} on the node; look for a service or a BMC power cap that lowers the limit"
        )
        yield _finding(gpu, Code.GPU_POWER_LIMITED, cause, remedy)


def _finding(gpu: GpuReading, code: Code, cause: str, remedy: str, verdict: Verdict = Verdict.FAIL) -> Finding:
    serial = gpu.serial or ""
    return Finding(
        check=_NAME, verdict=verdict, code=code, subject=gpu.subject, cause=cause, remedy=remedy, serial=serial
    )


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(Cause("nvidia_driver"), Cause("gpu_count", unmeasured=True)),
    limits=(GPU_POWER_LIMIT_MIN,),
)
