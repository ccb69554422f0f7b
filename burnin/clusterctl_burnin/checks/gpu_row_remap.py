"""gpu_row_remap: no GPU waits for spare memory, failed to replace faulty memory, or has used up its spare memory.

GPUs from Ampere on replace rows, older ones retire pages.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, known
from clusterctl_burnin.limits.limit import Limit, LimitKey
from clusterctl_burnin.probe import Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, each_or, each_since, risen

GPU_REMAPPED_ROWS_MAX = LimitKey(
    "gpu_remapped_rows_max",
    "rows",
    default=512,
    source="NVIDIA GPU memory error management, 512 row remappings is the most a GPU can do",
)
GPU_RETIRED_PAGES_MAX = LimitKey(
    "gpu_retired_pages_max",
    "pages",
    default=59,
    source="NVIDIA dynamic page retirement, a GPU is replaced from 60 retired pages on; it can retire 64",
)

_NAME = "gpu_row_remap"


_RESET = "reset the GPU or reboot the node"
_RESET_AND_REPEAT = f"{_RESET}, then run the burn-in again; replace the GPU if it replaces memory again"
_Found = tuple[Verdict, Code, str, str, int | None]
"""Verdict, code, cause, remedy, and the number that exceeds the limit."""


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    rows, pages = expected.limits[GPU_REMAPPED_ROWS_MAX], expected.limits[GPU_RETIRED_PAGES_MAX]

    def bad(gpu: GpuReading) -> Iterator[Finding]:
        limit, found = (pages, _pages(gpu, pages)) if gpu.retires_pages else (rows, _rows(gpu, rows))
        yield from (_finding(gpu, one, limit) for one in found)

    return each_or(_NAME, readings, expected, bad, passed(_NAME, "no row remapping is pending or failed"))


def _finding(gpu: GpuReading, found: _Found, limit: Limit) -> Finding:
    verdict, code, cause, remedy, count = found
    return Finding(
        check=_NAME,
        verdict=verdict,
        code=code,
        subject=gpu.subject,
        cause=cause,
        measured=None if count is None else limit.quantity(count),
        expected=None if count is None else limit.at_most,
        remedy=remedy,
        serial=gpu.serial or "",
    )


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    """Yield the states that are new, and the rows or pages that were replaced meanwhile."""
    rows, pages = expected.limits[GPU_REMAPPED_ROWS_MAX], expected.limits[GPU_RETIRED_PAGES_MAX]

    def added(was: GpuReading, gpu: GpuReading) -> Iterator[Finding]:
        retires = gpu.retires_pages
        limit, judge = (pages, _pages) if retires else (rows, _rows)
        known_codes = {code for _, code, *_ in judge(was, limit)}
        new = [one for one in judge(gpu, limit) if one[1] not in known_codes]
        yield from (_finding(gpu, one, limit) for one in new)
        old, now = was.spare_rows, gpu.spare_rows
        first, last = (old.retired, now.retired) if retires else (old.uncorrectable, now.uncorrectable)
        count = risen(first, last, "the retired pages" if retires else "the remapped rows")
        if count and not new:
            cause = "the GPU replaced faulty memory"
            yield _finding(gpu, (Verdict.FAIL, Code.GPU_REMAPPED_ROWS, cause, _RESET_AND_REPEAT, count), limit)

    return each_since(_NAME, before, after, expected, added)


def _rows(gpu: GpuReading, limit: Limit) -> Iterator[_Found]:
    spare = gpu.spare_rows
    if known(spare.failed, "whether a row remapping failed"):
        cause = "the GPU could not replace a faulty memory row by a spare row"
        yield Verdict.FAIL, Code.GPU_REMAP_FAILED, cause, "replace the GPU", None
        return
    if known(spare.pending, "whether a row remapping is pending"):
        cause = "the GPU replaces a faulty memory row only at its next reset"
        yield Verdict.FAIL, Code.GPU_REMAP_PENDING, cause, _RESET, None
    count = known(spare.uncorrectable, "the remapped rows")
    if count > limit.value:
        cause = "the GPU has replaced too many memory rows after uncorrectable errors"
        yield Verdict.FAIL, Code.GPU_REMAPPED_ROWS, cause, "replace the GPU", count
    elif short := (spare.low or 0) + (spare.none or 0):
        cause = f"{short} banks of the GPU's memory have few spare rows left, {spare.none or 0} of them none"
        yield (
            Verdict.WARN,
            Code.GPU_SPARE_ROWS_LOW,
            cause,
            "plan the GPU's replacement: the next fault may fail it",
            None,
        )


def _pages(gpu: GpuReading, limit: Limit) -> Iterator[_Found]:
    spare = gpu.spare_rows
    if known(spare.retirement_pending, "whether a page retirement is pending"):
        yield (
            Verdict.FAIL,
            Code.GPU_REMAP_PENDING,
            "the GPU retires a faulty memory page at its next reset",
            _RESET,
            None,
        )
    count = known(spare.retired, "the retired pages")
    if count > limit.value:
        cause = "the GPU has retired too many memory pages"
        yield Verdict.FAIL, Code.GPU_REMAPPED_ROWS, cause, "replace the GPU", count


CHECK = Check(
    _NAME,
    (NVIDIA_SMI,),
    _judge,
    area=Area.GPU,
    causes=(Cause("nvidia_driver"),),
    limits=(GPU_REMAPPED_ROWS_MAX, GPU_RETIRED_PAGES_MAX),
    after_loads=True,
    watch=Watch((NVIDIA_SMI,), _judge_load),
)
