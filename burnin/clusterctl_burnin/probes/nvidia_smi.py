"""What the GPU checks share: one `nvidia-smi -q`, judged GPU by GPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.host.pci import normal_address
from clusterctl.formats.nvidia.nvidia_smi import GpuReading, SmiLog, parse_query
from clusterctl_burnin.check import Expected, inconclusive, known
from clusterctl_burnin.limits.limit import LimitKey
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, UnmeasuredError

GPU_MEMORY_TEMPERATURE_MAX = LimitKey("gpu_memory_temperature_max", "°C")

NVIDIA_SMI = Probe("nvidia_smi", ("nvidia-smi", "-q"), timeout=20, role="nvidia_driver")

_LOST = re.compile(
    r"Unable to determine the device handle for GPU ?(?:\d+: )?"
    r"(?P<pci>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])"
)

_LONGEST = 5
"""Digits of a driver's branch."""
JudgeGpu = Callable[[GpuReading], Iterator[Finding]]


def no_devices(result: ProbeResult) -> bool:
    """Return whether the driver runs and has no GPU (exit code 6 in nvidia-smi's manual)."""
    return result.rc != 0 and "No devices were found" in result.stdout + result.stderr


def lost(result: ProbeResult) -> str:
    """Return the PCI address of a GPU that nvidia-smi cannot reach (exit code 15 in its manual), empty for none."""
    match = _LOST.search(result.stdout + result.stderr) if result.rc != 0 else None
    return normal_address(match["pci"]) if match else ""


def read(readings: Readings) -> SmiLog:
    """Return the log, without GPUs where the driver has none."""
    if no_devices(readings.result(NVIDIA_SMI)):
        return SmiLog(None, ())
    return parse_query(readings.text(NVIDIA_SMI))


def driver_branch(readings: Readings) -> int:
    """Return the branch of the driver: 570 of 570.124.06. Raises `UnmeasuredError` and `ParseError`."""
    version = known(read(readings).driver_version, "the driver's version")
    head = version.split(".")[0]
    if not head.isascii() or not head.isdigit() or len(head) > _LONGEST:
        raise UnmeasuredError(f"the driver's version is not understood: {version[:40]!r}", code=Code.NOT_REPORTED)
    return int(head)


def serials_by_uuid(readings: Readings) -> dict[str, str]:
    """Return the serials that name the GPUs; none where nvidia-smi -q could not be read (gpu_count reports that)."""
    try:
        return {gpu.uuid: gpu.serial for gpu in read(readings).gpus if gpu.uuid and gpu.serial}
    except (UnmeasuredError, ParseError):
        return {}


def each(check: str, readings: Readings, expected: Expected, judge: JudgeGpu) -> Iterator[Finding]:
    """Yield the findings of each listed GPU; INCONCLUSIVE for one that cannot be read, and for those not listed."""
    gpus = read(readings).gpus
    for gpu in gpus:
        try:
            yield from judge(gpu)
        except UnmeasuredError as error:
            yield inconclusive(check, error, gpu.subject, gpu.serial or "")
    yield from missing(check, len(gpus), expected.sku.gpu_count, "GPUs")


def each_or(check: str, readings: Readings, expected: Expected, judge: JudgeGpu, good: Finding) -> Iterator[Finding]:
    """Yield the findings of the GPUs; `good` where there are none."""
    found = tuple(each(check, readings, expected, judge))
    yield from found or (good,)


JudgeGpuLoad = Callable[[GpuReading, GpuReading], Iterator[Finding]]
"""Judges one GPU by the readings before and after a load."""


def each_since(
    check: str, before: Readings, after: Readings, expected: Expected, judge: JudgeGpuLoad
) -> Iterator[Finding]:
    """Yield the findings of each GPU that was listed before a load; INCONCLUSIVE for one that cannot be compared."""
    earlier = {gpu.pci: gpu for gpu in read(before).gpus}

    def of(gpu: GpuReading) -> Iterator[Finding]:
        was = earlier.get(gpu.pci)
        if was is None or was.uuid != gpu.uuid:
            raise UnmeasuredError("the GPU was not listed before the load", remedy="run the burn-in again")
        yield from judge(was, gpu)

    return each(check, after, expected, of)


def at_least(before: int | None, after: int | None, what: str) -> int:
    """Return what a counter gained at least: one that was reset has counted since then. `risen` raises for it."""
    first, last = known(before, what), known(after, what)
    return last - first if last >= first else last


def risen(before: int | None, after: int | None, what: str) -> int:
    """Return what a counter gained. Raises `UnmeasuredError` where it was not reported, or was reset meanwhile."""
    first, last = known(before, what), known(after, what)
    if last < first:
        raise UnmeasuredError(
            f"{what} were counted from zero again: the GPU was reset, or its driver loaded again",
            remedy="find what reset the GPU in the kernel log, then run the burn-in again",
        )
    return last - first


def missing(check: str, listed: int, wanted: int, things: str) -> Iterator[Finding]:
    """Yield INCONCLUSIVE where a check saw fewer things than the node should have."""
    if listed < wanted:
        cause = f"{listed} of {wanted} {things} could be measured"
        remedy = f"restore the missing {things} first"
        yield inconclusive(check, UnmeasuredError(cause, remedy=remedy, code=Code.PARTS_MISSING, fault=things))
