"""What DCGM's fields of a GPU show of the time of a load: errors that were added between two readings of dcgm-exporter.

The fields are those of DCGM's dcgm_fields.h. The exporter reads them at its own interval, 30 s by default: what
happened in the last seconds of a load may show in the next one. A field that is not exported is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity
from clusterctl.formats.nvidia.dcgm_exporter import ExportedMetrics
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.chance import exceeds
from clusterctl_burnin.check import inconclusive
from clusterctl_burnin.checks.gpu_pcie import GPU_PCIE_REPLAY_RATE_MAX
from clusterctl_burnin.checks.nvlink_errors import NVLINK_CRC_ERRORS_MAX, NVLINK_ERRORS_MAX
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import UnmeasuredError

_LINKS = (
    "reset the GPU, restart nvidia-fabricmanager and run the burn-in again; "
    "if errors come back, reseat the GPU at both ends of the links, then replace it"
)
_MEMORY = "reset the GPU and run the burn-in again; if they come back, replace the GPU"
_SECONDS = {"per minute": 60.0, "per second": 1.0}
_XID = "DCGM_FI_DEV_XID_ERRORS"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that counts errors. `limit`: how many may be added in its unit of time; None: not one."""

    name: str
    what: str
    code: Code
    remedy: str
    limit: LimitKey | None = None


COUNTED = (
    Field("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "uncorrectable memory errors", Code.GPU_ECC_UNCORRECTABLE, _MEMORY),
    Field("DCGM_FI_DEV_ROW_REMAP_FAILURE", "failed replacements of memory rows", Code.GPU_REMAP_FAILED, _MEMORY),
    Field(
        "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLink replays", Code.NVLINK_ERRORS, _LINKS, NVLINK_ERRORS_MAX
    ),
    Field(
        "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        "NVLink recoveries",
        Code.NVLINK_ERRORS,
        _LINKS,
        NVLINK_ERRORS_MAX,
    ),
    Field(
        "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "CRC errors of NVLink's flow control",
        Code.NVLINK_ERRORS,
        _LINKS,
        NVLINK_CRC_ERRORS_MAX,
    ),
    Field(
        "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        "CRC errors of NVLink's data",
        Code.NVLINK_ERRORS,
        _LINKS,
        NVLINK_CRC_ERRORS_MAX,
    ),
    Field(
        "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
        "PCIe replays",
        Code.GPU_PCIE_REPLAYS,
        "reseat the GPU or its riser, then run the burn-in again",
        GPU_PCIE_REPLAY_RATE_MAX,
    ),
)


@dataclass(frozen=True, slots=True)
class Between:
    """Two readings of the exporter, and the seconds between them. `check`: in whose name is judged."""

    check: str
    first: ExportedMetrics
    last: ExportedMetrics
    seconds: float
    limits: Limits


def added(gpu: GpuReading, between: Between) -> Iterator[Finding]:
    """Yield what was added to the fields of a GPU; a field that fell is INCONCLUSIVE."""
    for field in COUNTED:
        first, last = (one.highest(gpu.uuid or "", field.name) for one in (between.first, between.last))
        if first is None or last is None or first == last:
            continue
        if last < first:
            error = UnmeasuredError(f"DCGM counts {field.what} from zero again", remedy="run the burn-in again")
            yield inconclusive(between.check, error, gpu.subject, gpu.serial or "")
            continue
        found = _judged(gpu, field, round(last - first), between)
        if found is not None:
            yield found
    yield from _new_xid(gpu, between)


def _judged(gpu: GpuReading, field: Field, count: int, between: Between) -> Finding | None:
    limit = between.limits[field.limit] if field.limit is not None else None
    if limit is not None and not exceeds(count, between.seconds, limit.value / _SECONDS[limit.unit]):
        return None
    return Finding(
        check=between.check,
        verdict=Verdict.FAIL,
        code=field.code,
        subject=gpu.subject,
        cause=f"DCGM counts {count} {field.what} of the GPU more than before ({field.name})",
        measured=Quantity(count, f"in {between.seconds:.0f} s"),
        expected=limit.at_most if limit is not None else None,
        remedy=field.remedy,
        serial=gpu.serial or "",
    )


def _new_xid(gpu: GpuReading, between: Between) -> Iterator[Finding]:
    """Yield a new last Xid. The kernel log judges what it means; it may have lost the message."""
    first, last = (one.highest(gpu.uuid or "", _XID) for one in (between.first, between.last))
    if last and first is not None and last != first:
        yield Finding(
            check=between.check,
            verdict=Verdict.WARN,
            code=Code.XID,
            subject=gpu.subject,
            cause=f"DCGM reports Xid {last:.0f} of the GPU, and did not before",
            remedy=f"read what the kernel log has of Xid {last:.0f}, and run the burn-in again",
            serial=gpu.serial or "",
        )
