"""gpu_firmware: all GPUs of the node have one VBIOS and one InfoROM, and GSP firmware of the driver's version.

The vendor decides which versions are right. A GPU that differs from its neighbours was replaced or left out of an
update, and fails. The GSP's firmware comes with the driver, and one of another version is a driver half installed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading, SmiLog
from clusterctl_burnin.check import Area, Cause, Check, Expected, inconclusive, known
from clusterctl_burnin.probe import Readings, UnmeasuredError
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, missing, read

_NAME = "gpu_firmware"
_UPDATE = "bring all GPUs of the node to one firmware with the machine vendor's update, then reboot"
_DRIVER = "configure the node again (role nvidia_driver) and reboot it"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    log = read(readings)
    found = [*_of_one_kind(log.gpus), *_of_the_driver(log)]
    found += missing(_NAME, len(log.gpus), expected.sku.gpu_count, "GPUs")
    yield from found
    if not found:
        versions = ", ".join(sorted({f"{gpu.vbios}" for gpu in log.gpus}))
        yield passed(_NAME, "all GPUs have the same firmware", measured=versions)


def _of_one_kind(gpus: Sequence[GpuReading]) -> Iterator[Finding]:
    yield from _alike("VBIOS", [(gpu, gpu.vbios) for gpu in gpus])
    yield from _alike("InfoROM", [(gpu, gpu.inforom) for gpu in gpus])


def _alike(what: str, versions: Sequence[tuple[GpuReading, str | None]]) -> Iterator[Finding]:
    """Yield the GPUs with a version that is unknown, or not that of most GPUs."""
    counts = Counter(version for _, version in versions if version is not None)
    usual = counts.most_common(1)[0][0] if counts else ""
    for gpu, version in versions:
        if version is None:
            remedy = "read the output of nvidia-smi -q"
            error = UnmeasuredError(f"nvidia-smi does not report the GPU's {what}", remedy=remedy)
            yield inconclusive(_NAME, error, gpu.subject, gpu.serial or "")
        elif version != usual:
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_FIRMWARE_DIFFERS,
                subject=gpu.subject,
                cause=f"the GPU's {what} differs from most GPUs of the node",
                measured=version,
                expected=usual,
                remedy=_UPDATE,
                serial=gpu.serial or "",
            )


def _of_the_driver(log: SmiLog) -> Iterator[Finding]:
    """Yield other versions than the driver's. `N/A` where the driver works without GSP: nothing to compare."""
    for gpu in log.gpus:
        driver = known(log.driver_version, "the driver's version")
        if gpu.gsp_firmware is not None and gpu.gsp_firmware != driver:
            cause, serial = "the GPU's GSP firmware does not have the driver's version", gpu.serial or ""
            yield Finding(
                check=_NAME,
                verdict=Verdict.FAIL,
                code=Code.GPU_FIRMWARE_DIFFERS,
                subject=gpu.subject,
                cause=cause,
                measured=gpu.gsp_firmware,
                expected=driver,
                remedy=_DRIVER,
                serial=serial,
            )


CHECK = Check(_NAME, (NVIDIA_SMI,), _judge, area=Area.GPU, causes=(Cause("nvidia_driver"),))
