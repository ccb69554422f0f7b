"""gpu_row_remap: no GPU waits for a row remapping, failed at one, or has used up its spare rows."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, known
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each

GPU_REMAPPED_ROWS_MAX = LimitKey(
    "gpu_remapped_rows_max",
    "rows",
    default=512,
    source="NVIDIA GPU memory error management, 512 row remappings is the most a GPU can do",
)

_NAME = "gpu_row_remap"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    limit = expected.limits[GPU_REMAPPED_ROWS_MAX]

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        subject, serial = gpu.subject, gpu.serial or ""
        if known(gpu.remap_failed, "whether a row remapping failed"):
            cause = "the GPU could not replace a faulty memory row by a spare row"
            remedy = "replace the GPU"
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_REMAP_FAILED,
                subject=subject,
                cause=cause,
                remedy=remedy,
                serial=serial,
            )
            return
        if known(gpu.remap_pending, "whether a row remapping is pending"):
            cause, remedy = (
                "the GPU replaces a faulty memory row only at its next reset",
                "reset the GPU or reboot the node",
            )
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_REMAP_PENDING,
                subject=subject,
                cause=cause,
                remedy=remedy,
                serial=serial,
            )
        rows = known(gpu.remapped_uncorrectable, "the remapped rows")
        if rows > limit.value:
            cause = "the GPU has replaced too many memory rows after uncorrectable errors"
            remedy = "replace the GPU"
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_REMAPPED_ROWS,
                subject=subject,
                cause=cause,
                measured=limit.quantity(rows),
                expected=limit.at_most,
                remedy=remedy,
                serial=serial,
            )

    found = tuple(each(_NAME, readings, expected, bad))
    yield from found or (passed(_NAME, "no row remapping is pending or failed"),)


CHECK = Check(
    _NAME, (NVIDIA_SMI,), _judge, area=Area.GPU, causes=(Cause("nvidia_driver"),), limits=(GPU_REMAPPED_ROWS_MAX,)
)
