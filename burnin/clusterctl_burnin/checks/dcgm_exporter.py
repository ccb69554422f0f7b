"""dcgm_exporter: the site's dcgm-exporter answers, reports each GPU of the node and no other, and its values move.

The site names its address (`checks.dcgm_exporter`). Whether the values move is seen during loads: a GPU's power is not
the same to the last digit before and after one. An exporter that has lost DCGM keeps the last values. What DCGM's own
fields count during a load is judged, too (`dcgm_fields.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl.fleet.finding import Finding, Verdict, not_applicable, passed
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.quantity import Bound, Quantity, exactly
from clusterctl.formats.nvidia.dcgm_exporter import ExportedMetrics, parse_dcgm_metrics
from clusterctl.formats.nvidia.nvidia_smi import GpuReading
from clusterctl_burnin.check import Area, Cause, Check, Expected, Watch, inconclusive
from clusterctl_burnin.dcgm_fields import Between, added
from clusterctl_burnin.probe import Probe, Readings, UnmeasuredError, seconds_between
from clusterctl_burnin.probes.nvidia_smi import NVIDIA_SMI, read

METRICS = Probe("dcgm_metrics", ("dcgm-metrics", "8"), timeout=15.0)
_NAME = "dcgm_exporter"
_RESTART = (
    "run systemctl restart nvidia-dcgm-exporter, or docker restart its container, and read its log; "
    "see that the DCGM host engine that it asks runs (dcgmi discovery -l)"
)
_MOVES_S = 90.0
"""Seconds: three of its intervals of 30 s (the option --collect-interval of dcgm-exporter)."""
_POWER = "DCGM_FI_DEV_POWER_USAGE{"


def _judge(readings: Readings, expected: Expected) -> Iterator[Finding]:
    if not expected.sku.gpu_count:
        yield not_applicable(_NAME, "the SKU has no GPU")
        return
    exported = parse_dcgm_metrics(readings.text(METRICS))
    if not exported.url:
        yield not_applicable(_NAME, "the site names no exporter (checks.dcgm_exporter)")
    elif exported.error_output:
        cause = f"dcgm-exporter does not answer on {exported.url}: {exported.error_output}"
        yield Finding(check=_NAME, verdict=Verdict.FAIL, code=Code.SERVICE_MUTE, cause=cause, remedy=_RESTART)
    elif not exported.gpus:
        yield Finding(
            check=_NAME,
            verdict=Verdict.FAIL,
            code=Code.EXPORTER_GPUS,
            cause="dcgm-exporter answers, and reports no GPU",
            measured=Quantity(0, "GPUs"),
            expected=exactly(expected.sku.gpu_count, "GPUs"),
            remedy=_RESTART,
        )
    else:
        yield from _compared(exported, readings)


def _compared(exported: ExportedMetrics, readings: Readings) -> Iterator[Finding]:
    """Compare the exporter's GPUs with those of the driver, by UUID."""
    gpus = read(readings).gpus
    if not gpus or not all(gpu.uuid for gpu in gpus):
        raise UnmeasuredError("nvidia-smi does not report the UUID of each GPU", remedy="read its raw output")
    missing = [gpu for gpu in gpus if gpu.uuid not in exported.gpus]
    measured, expected = Quantity(len(exported.gpus), "GPUs"), exactly(len(gpus), "GPUs")
    yield from (_not_exported(gpu, measured, expected) for gpu in missing)
    strange = sorted(exported.gpus.keys() - {gpu.uuid for gpu in gpus})
    if strange:
        cause = f"dcgm-exporter reports a GPU that the node does not have: {', '.join(strange)[:300]}"
        yield Finding(check=_NAME, verdict=Verdict.FAIL, code=Code.EXPORTER_STALE, cause=cause, remedy=_RESTART)
    if not missing and not strange:
        yield passed(_NAME, "dcgm-exporter reports each GPU", measured=measured, expected=expected)


def _not_exported(gpu: GpuReading, measured: Quantity, expected: Bound) -> Finding:
    return Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.EXPORTER_GPUS,
        subject=gpu.subject,
        cause="dcgm-exporter does not report the GPU",
        measured=measured,
        expected=expected,
        remedy=_RESTART,
        serial=gpu.serial or "",
    )


def _judge_load(before: Readings, after: Readings, expected: Expected) -> Iterator[Finding]:
    first, second = (parse_dcgm_metrics(one.text(METRICS)) for one in (before, after))
    seconds = seconds_between(before, after, METRICS)
    if first.gpus and second.error_output:
        lost = f"dcgm-exporter answered before the load, and does not after it: {second.error_output}"
        raise UnmeasuredError(lost, remedy=_RESTART)
    if first.gpus:
        between = Between(_NAME, first, second, seconds, expected.limits)
        yield from (finding for gpu in read(after).gpus for finding in added(gpu, between))
        yield from (_left_out(gpu) for gpu in read(after).gpus if gpu.uuid in first.gpus.keys() - second.gpus.keys())
    if seconds < _MOVES_S or not (powers := _powers(first)) or powers != _powers(second):
        return
    yield Finding(
        check=_NAME,
        verdict=Verdict.FAIL,
        code=Code.EXPORTER_STALE,
        cause=f"dcgm-exporter reports the same power of each GPU before and after a load of {seconds:.0f} s",
        remedy=_RESTART,
    )


def _left_out(gpu: GpuReading) -> Finding:
    error = UnmeasuredError("dcgm-exporter does not report the GPU any longer", remedy=_RESTART)
    return inconclusive(_NAME, error, gpu.subject, gpu.serial or "")


def _powers(exported: ExportedMetrics) -> Mapping[str, str]:
    """Return the power of each GPU as it is written."""
    fields = (item for values in exported.gpus.values() for item in values.items())
    return {name: value for name, value in fields if name.startswith(_POWER)}


CHECK = Check(
    _NAME,
    (METRICS, NVIDIA_SMI),
    _judge,
    area=Area.SERVICES,
    causes=(
        Cause("nvidia_driver"),
        Cause("gpu_count"),
        Cause("docker"),
        Cause("monitoring_containers"),
        Cause("root_writable"),
        Cause("disk_space"),
        *(
            Cause(check, same_part=True)
            for check in ("kernel_log", "nvlink_errors", "gpu_ecc", "gpu_row_remap", "gpu_pcie")
        ),
    ),
    watch=Watch((METRICS, NVIDIA_SMI), _judge_load),
)
