"""Every check that there is. A new check is one file in `checks/` and its line here."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.burnin.check import Check
from clusterctl.burnin.checks import (
    clock_offset,
    disk_space,
    failed_units,
    gpu_count,
    gpu_ecc,
    gpu_idle,
    gpu_row_remap,
    hca_count,
    hca_link,
    identity,
    kernel_log,
    memory_size,
    node_exporter,
    nvidia_driver,
    nvlink,
    pcie_width,
    swap_off,
)

CHECKS: Mapping[str, Check] = {
    module.CHECK.name: module.CHECK
    for module in (
        clock_offset,
        disk_space,
        failed_units,
        gpu_count,
        gpu_ecc,
        gpu_idle,
        gpu_row_remap,
        hca_count,
        hca_link,
        identity,
        kernel_log,
        memory_size,
        node_exporter,
        nvidia_driver,
        nvlink,
        pcie_width,
        swap_off,
    )
}
