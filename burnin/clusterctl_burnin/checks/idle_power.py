"""idle_power: no idle GPU draws much more power than an idle GPU does.

It costs heat and hides work that nvidia-smi does not list. The fleet's other GPUs show what is usual.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, at_most
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.fleet_stats import Bad, Metric, Sample
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or, read

_REMEDY = "find what keeps the GPU awake (nvidia-smi pmon -c 1, dcgmi); reset the GPU, and replace it if it stays so"
IDLE_POWER = Metric("gpu_idle_power", "W", Bad.HIGH, 0.0, 25.0, _REMEDY)
IDLE_POWER_MAX = LimitKey(
    "gpu_idle_power_max",
    "% of the default power limit",
    default=25,
    source="own choice; idle H100, A100, L40S and B200 in public listings draw 8 to 18 %",
)
_NAME = "idle_power"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[IDLE_POWER_MAX]

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        watts = known(gpu.power.draw, "the power that the GPU draws")
        allowed = known(gpu.power.limit_default, "the GPU's default power limit") * limit.value / 100
        if watts > allowed:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_IDLE_POWER,
                subject=gpu.subject,
                cause="the idle GPU draws too much power",
                measured=Quantity(watts, "W"),
                expected=at_most(allowed, "W"),
                remedy=_REMEDY,
                serial=gpu.serial or "",
                deterministic=False,
            )

    return each_or(_NAME, readings, expected, bad, passed(_NAME, "no idle GPU draws much power"))


def _samples(node: str, population: str, readings: Readings) -> Iterator[Sample]:
    for gpu in read(readings).gpus:
        if gpu.power.draw is not None:
            yield Sample(node, IDLE_POWER, gpu.power.draw, population, gpu.subject, gpu.serial or "")


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(
        Cause("nvidia_driver"),
        Cause("gpu_count", unmeasured=True),
        Cause("gpu_idle", same_part=True),
        Cause("sensor_plausible", same_part=True),
    ),
    limits=(IDLE_POWER_MAX,),
    metrics=(IDLE_POWER,),
    samples=_samples,
    idle_only=True,
)
