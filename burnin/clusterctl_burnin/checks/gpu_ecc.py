"""gpu_ecc: ECC is on no GPU has had an uncorrectable memory error since it was last reset, nor many
corrected ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import exactly
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each

GPU_UNCORRECTABLE_ECC_MAX = LimitKey(
    "gpu_uncorrectable_ecc_max",
    "errors",
    default=0,
    source="NVIDIA GPU memory error management, one uncorrectable error needs at least a reset",
)
GPU_CORRECTED_ECC_MAX = LimitKey(
    "gpu_corrected_ecc_max",
    "errors since the driver was loaded",
    default=10_000,
    source="own choice; the GPU corrects them and replaces the row, many point at a part that is about to fail",
)

_NAME = "gpu_ecc"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit, corrected = expected.limits[GPU_UNCORRECTABLE_ECC_MAX], expected.limits[GPU_CORRECTED_ECC_MAX]

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        subject, serial = gpu.subject, gpu.serial or ""
        if not known(gpu.ecc_enabled, "whether ECC is on"):
            remedy = "run nvidia-smi --ecc-config=1 on the node and reboot it"
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_ECC_OFF,
                subject=subject,
                cause="ECC is off",
                measured="off",
                expected="on",
                remedy=remedy,
                serial=serial,
            )
            return
        if gpu.ecc_enabled_after_reset is False:
            remedy = "run nvidia-smi --ecc-config=1 on the node"
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_ECC_OFF,
                subject=subject,
                cause="ECC will be off after the next reset",
                remedy=remedy,
                serial=serial,
            )
        errors = known(gpu.uncorrectable_since_boot, "the uncorrectable ECC errors")
        if gpu.sram_threshold_exceeded:
            cause = "the GPU's SRAM has more uncorrectable errors than NVIDIA allows"
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_SRAM_THRESHOLD,
                subject=subject,
                cause=cause,
                remedy="replace the GPU",
                serial=serial,
            )
        elif errors > limit.value:
            cause = "uncorrectable memory errors since the driver was loaded"
            remedy = "reset the GPU and run the burn-in again; if they come back, replace the GPU"
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_ECC_UNCORRECTABLE,
                subject=subject,
                cause=cause,
                measured=limit.quantity(errors),
                expected=limit.at_most,
                remedy=remedy,
                serial=serial,
            )
        elif not gpu.retires_pages and known(gpu.sram_uncorrectable_ever, "the SRAM errors of the GPU's life"):
            cause = "uncorrectable SRAM errors earlier in its life"
            remedy = "check this GPU again after the next burn-in"
            yield Finding(
                check=_NAME,
                verdict=Verdict.WARN,
                code=Code.GPU_ECC_EARLIER,
                subject=subject,
                cause=cause,
                measured=limit.quantity(gpu.sram_uncorrectable_ever or 0),
                expected=exactly(0, limit.unit),
                remedy=remedy,
                serial=serial,
            )
        count = known(gpu.dram_corrected_since_boot, "the corrected ECC errors")
        if count > corrected.value:
            yield Finding(
                check=_NAME,
                verdict=Verdict.WARN,
                code=Code.GPU_ECC_CORRECTED,
                subject=subject,
                cause="the GPU corrected many memory errors since the driver was loaded",
                measured=corrected.quantity(count),
                expected=corrected.at_most,
                remedy="reset the GPU, and replace it if later burn-ins find as many errors again",
                serial=serial,
            )

    found = tuple(each(_NAME, readings, expected, bad))
    yield from found or (passed(_NAME, "ECC is on and no GPU has uncorrectable errors"),)


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(Cause("nvidia_driver"),),
    limits=(GPU_UNCORRECTABLE_ECC_MAX, GPU_CORRECTED_ECC_MAX),
    after_loads=True,
)
