"""nvlink: every GPU has all its NVLinks, at full rate."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Quantity, exactly
from clusterctl.formats.nvidia.nvlink import GpuLinks, parse_nvlink_status
from clusterctl_burnin.check import Area, Cause, Check, Expected
from clusterctl_burnin.limits.limit import LimitKey, Limits
from clusterctl_burnin.probe import Probe, Readings
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, missing, serials_by_uuid

NVLINK_COUNT = LimitKey("nvlink_count", "links")
NVLINK_RATE_MIN = LimitKey("nvlink_rate_min", "GB/s")

STATUS = Probe("nvlink", ("nvidia-smi", "nvlink", "--status"), timeout=20, role="nvidia_driver")
_NAME = "nvlink"
_REMEDY = "restart nvidia-fabricmanager and reboot the node; if links stay down, reseat the GPU, then replace it"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.limits[NVLINK_COUNT].value:
        yield not_applicable(_NAME, "GPUs of this kind have no NVLink")
        return
    gpus = parse_nvlink_status(readings.text(STATUS))
    serials = serials_by_uuid(readings)
    bad = [finding for gpu in gpus for finding in _bad(gpu, expected.limits, serials.get(gpu.uuid, ""))]
    yield from bad
    absent = tuple(missing(_NAME, len(gpus), expected.sku.gpu_count, "GPUs"))
    yield from absent
    if not bad and not absent:
        count = float(expected.limits[NVLINK_COUNT].value)
        yield passed(
            _NAME,
            "all NVLinks are up at full rate",
            measured=Quantity(count, "links each"),
            expected=exactly(count, "links each"),
        )


def _bad(gpu: GpuLinks, limits: Limits, serial: str) -> Iterator[Finding]:
    count, rate = limits[NVLINK_COUNT], limits[NVLINK_RATE_MIN]
    subject = f"gpu {gpu.index}"
    if len(gpu.active) < count.value:
        down = ", ".join(str(link) for link, rate in enumerate(gpu.rates) if rate is None) or "all"
        cause = f"NVLinks of the GPU are down: {down}"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NVLINK_DOWN,
            subject=subject,
            cause=cause,
            measured=count.quantity(len(gpu.active)),
            expected=count.exactly,
            remedy=_REMEDY,
            serial=serial,
        )
    slow = [value for value in gpu.active if value < rate.value]
    if slow:
        cause = f"{len(slow)} NVLinks of the GPU are slow"
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.NVLINK_SLOW,
            subject=subject,
            cause=cause,
            measured=rate.quantity(min(slow)),
            expected=rate.at_least,
            remedy=_REMEDY,
            serial=serial,
        )


CHECK = Check(
    _NAME,
    (STATUS, NVIDIA_SMI),
    _judge,
    area=Area.NVLINK,
    limits=(
        NVLINK_COUNT,
        NVLINK_RATE_MIN,
    ),
    causes=(Cause("fabric_manager"),),
)
