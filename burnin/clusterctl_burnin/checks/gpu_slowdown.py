"""gpu_slowdown: neither heat nor the machine slows an idle GPU down.

The clock event reasons of nvidia-smi. That the power cap lowers a clock is usual, and `idle` is no fault. A power brake
comes from the machine: some servers set it while idle, so it is a warning here; its cost shows under load.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or

_NAME = "gpu_slowdown"
_COOL = "check the machine's fans, air baffles or coolant, then the GPU's heat sink; run the burn-in again"
_POWER = "look for a lost power supply, a power cap or a power event in the BMC; compare the GPU's speed under load"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    def bad(gpu: GpuReading) -> Iterator[Finding]:
        found = _reason(gpu)
        if found is not None:
            verdict, code, cause, remedy = found
            yield Finding(
                check=_NAME,
                verdict=verdict,
                code=code,
                subject=gpu.subject,
                cause=cause,
                remedy=remedy,
                serial=gpu.serial or "",
                deterministic=False,
            )

    return each_or(_NAME, readings, expected, bad, passed(_NAME, "nothing slows an idle GPU down"))


def _reason(gpu: GpuReading) -> tuple[Verdict, Code, str, str] | None:
    """Return verdict, code, cause and remedy; the gravest reason counts. Raises `UnmeasuredError`."""
    now = gpu.slowdown
    hardware = known(now.hardware, "whether the hardware slows the GPU down")
    if known(now.hardware_thermal, "whether heat slows the GPU down") or known(
        now.software_thermal, "whether the driver slows the GPU down for heat"
    ):
        return Verdict.FAIL, Code.GPU_THROTTLED, "heat slows the idle GPU down", _COOL
    if known(now.power_brake, "whether a power brake slows the GPU down"):
        cause = "the machine slows the GPU down (power brake)"
        return Verdict.WARN, Code.GPU_POWER_BRAKE, cause, _POWER
    if hardware:
        return (
            Verdict.FAIL,
            Code.GPU_THROTTLED,
            "the hardware slows the idle GPU down, for no reason that it names",
            _POWER,
        )
    return None


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(
        Cause("nvidia_driver"),
        Cause("gpu_count", unmeasured=True),
        Cause("gpu_idle", same_part=True),
    ),
    idle_only=True,
)
