"""By which figures of a limits file a check judges, so that a report can name each with its unit and source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl_burnin.limit import Limits

BY_CHECK: Mapping[str, tuple[str, ...]] = {
    "all_at_once": ("gpu_memory_temperature_max", "memory_corrected_max"),
    "all_reduce": ("all_reduce_busbw_min",),
    "all_reduce_node": ("all_reduce_node_busbw_min",),
    "all_reduce_rail": ("all_reduce_rail_busbw_min",),
    "clock_offset": ("clock_offset_max",),
    "cpu_frequency": ("cpu_busy_clock_min",),
    "cpu_share": ("cpu_share_min",),
    "disk_space": ("disk_free_min",),
    "fabric_manager": ("nvlink_count",),
    "gpu_ecc": ("gpu_uncorrectable_ecc_max",),
    "gpu_load": (
        "gpu_gemm_bf16_min",
        "gpu_gemm_fp8_min",
        "gpu_memory_rate_min",
        "gpu_host_to_device_min",
        "gpu_device_to_host_min",
        "gpu_peer_min",
        "gpu_below_best_max",
        "gpu_memory_temperature_max",
    ),
    "gpu_idle": ("gpu_idle_memory_max", "gpu_temperature_max", "gpu_memory_temperature_max"),
    "gpu_row_remap": ("gpu_remapped_rows_max",),
    "gpu_temperature": ("gpu_temperature_above_others_max",),
    "gpu_topology": ("nvlink_count",),
    "hca_errors": (
        "hca_link_downs_max",
        "hca_link_recoveries_max",
        "hca_receive_errors_max",
        "hca_symbol_errors_max",
    ),
    "hca_firmware": ("hca_firmware_min",),
    "ib_write_bw": ("ib_write_bw_min",),
    "memory_errors": ("memory_corrected_max",),
    "memory_size": ("memory_usable_min",),
    "nvlink": ("nvlink_count", "nvlink_rate_min"),
    "nvme_health": ("nvme_used_max",),
    "nvme_read": ("nvme_read_iops_min",),
    "pcie_chain": ("pcie_width_min", "pcie_speed_min"),
    "pcie_width": ("pcie_width_min", "pcie_speed_min"),
    "stress_ng": ("memory_corrected_max",),
    "zpool": ("zpool_write_max",),
}
"""Check or load → names in the limits file; who is not there judges by no figure of it."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A figure of a limits file as its operators read it; `unit` is empty for a version."""

    name: str
    value: str
    unit: str
    source: str


def limits_behind(check: str, limits: Limits) -> tuple[Behind, ...]:
    return tuple(_behind(name, limits) for name in BY_CHECK.get(check, ()))


def _behind(name: str, limits: Limits) -> Behind:
    if name in limits.versions:
        version = limits.versions[name]
        return Behind(name, version.value, "", version.source)
    limit = limits[name]
    return Behind(name, str(limit), limit.unit, limit.source)
