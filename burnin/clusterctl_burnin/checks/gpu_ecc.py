"""gpu_ecc: ECC is on, and no GPU has had uncorrectable memory errors, or many corrected ones, since its last reset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import exactly
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, known
from clusterctl_burnin.limits.limit import Limit, LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, at_least, each_or, each_since, risen

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
        yield from _off(gpu)
        if gpu.ecc_enabled:
            yield from _uncorrectable(gpu, limit)
            yield from _corrected(gpu, corrected)

    return each_or(_NAME, readings, expected, bad, passed(_NAME, "ECC is on and no GPU has uncorrectable errors"))


def _off(gpu: GpuReading) -> Iterator[Finding]:
    off = Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.GPU_ECC_OFF,
        subject=gpu.subject,
        cause="ECC is off",
        measured="off",
        expected="on",
        remedy="run nvidia-smi --ecc-config=1 on the node and reboot it",
        serial=gpu.serial or "",
    )
    if not known(gpu.ecc_enabled, "whether ECC is on"):
        yield off
    elif gpu.ecc_enabled_after_reset is False:
        remedy = "run nvidia-smi --ecc-config=1 on the node"
        yield replace(off, cause="ECC will be off after the next reset", measured=None, expected=None, remedy=remedy)


def _uncorrectable(gpu: GpuReading, limit: Limit) -> Iterator[Finding]:
    """Yield the gravest of the uncorrectable errors."""
    errors = known(gpu.uncorrectable_since_boot, "the uncorrectable ECC errors")
    bad = Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.GPU_ECC_UNCORRECTABLE,
        subject=gpu.subject,
        cause="the GPU has had uncorrectable memory errors since the driver was loaded",
        measured=limit.quantity(errors),
        expected=limit.at_most,
        remedy="reset the GPU and run the burn-in again; if they come back, replace the GPU",
        serial=gpu.serial or "",
    )
    if gpu.sram_threshold_exceeded:
        cause = "the GPU's SRAM has more uncorrectable errors than NVIDIA allows"
        remedy, code = "replace the GPU", Code.GPU_SRAM_THRESHOLD
        yield replace(bad, code=code, cause=cause, measured=None, expected=None, remedy=remedy)
    elif errors > limit.value:
        yield bad
    elif not gpu.retires_pages and known(gpu.sram_uncorrectable_ever, "the SRAM errors of the GPU's life"):
        yield replace(
            bad,
            verdict=Verdict.WARN,
            code=Code.GPU_ECC_EARLIER,
            cause="uncorrectable SRAM errors earlier in its life",
            measured=limit.quantity(gpu.sram_uncorrectable_ever or 0),
            expected=exactly(0, limit.unit),
            remedy="check this GPU again after the next burn-in",
        )


def _corrected(gpu: GpuReading, limit: Limit) -> Iterator[Finding]:
    count = known(gpu.dram_corrected_since_boot, "the corrected ECC errors")
    if count > limit.value:
        yield Finding(
            check=_NAME,
            verdict=Verdict.WARN,
            code=Code.GPU_ECC_CORRECTED,
            subject=gpu.subject,
            cause="the GPU corrected many memory errors since the driver was loaded",
            measured=limit.quantity(count),
            expected=limit.at_most,
            remedy="reset the GPU, and replace it if later burn-ins find as many errors again",
            serial=gpu.serial or "",
        )


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    uncorrectable, corrected = expected.limits[GPU_UNCORRECTABLE_ECC_MAX], expected.limits[GPU_CORRECTED_ECC_MAX]

    def added(was: GpuReading, gpu: GpuReading) -> Iterator[Finding]:
        if not gpu.ecc_enabled:
            return
        grave = (was.uncorrectable_since_boot, gpu.uncorrectable_since_boot, "the uncorrectable ECC errors")
        slight = (was.dram_corrected_since_boot, gpu.dram_corrected_since_boot, "the corrected ECC errors")
        counts = at_least(*grave)
        if counts:
            yield from _uncorrectable(replace(gpu, uncorrectable_since_boot=counts), uncorrectable)
        few = at_least(*slight)
        if few:
            yield Finding(
                check=_NAME,
                verdict=Verdict.WARN,
                code=Code.GPU_ECC_CORRECTED,
                subject=gpu.subject,
                cause="the GPU corrected memory errors",
                measured=corrected.quantity(few),
                remedy="check this GPU again after the next burn-in; replace it if the errors become more",
                serial=gpu.serial or "",
            )
        for counter in (grave, slight):
            risen(*counter)  # raises where it was reset: there may have been more

    return each_since(_NAME, before, after, expected, added)


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(Cause("nvidia_driver"),),
    limits=(GPU_UNCORRECTABLE_ECC_MAX, GPU_CORRECTED_ECC_MAX),
    after_loads=True,
    watch=Watch((NVIDIA_SMI,), _judge_load),
)
