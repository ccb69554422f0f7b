"""Faults that a host's own tools show: each is one root finding, on the right part, with the right remedy."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Report, Verdict
from clusterctl_lab.faults import find
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.variation import healthy
from tests.lab.offline_kit import findings


@dataclass(frozen=True)
class Case:
    fault: str
    part: str
    check: str
    subject: str
    remedy: str
    serial: str = ""


CASES = (
    Case("hot-gpu", "gpu1", "gpu_temperature", "gpu 1", "heat sink", "165000010001"),
    Case("adapter-in-other-slot", "mlx5_5", "gpu_topology", "gpu 5", "in the slot"),
    Case("fabric-not-joined", "gpu2", "fabric_manager", "gpu 2", "reset the GPU", "165000010002"),
    Case("other-vbios", "gpu3", "gpu_firmware", "gpu 3", "bring all GPUs", "165000010003"),
    Case("persistence-off", "gpu7", "gpu_persistence", "gpu 7", "nvidia-persistenced", "165000010007"),
    Case("acs-on", "mlx5_2", "gpudirect_rdma", "node", "clusterctl-pcie-acs-off"),
    Case("pcie-switch-width", "mlx5_4", "pcie_chain", "pci 0000:98:00.0", "reseat the board"),
    Case("flapping-port", "mlx5_1", "hca_errors", "mlx5_1", "reseat the cable", "MT2340000101"),
    Case("gpu-off-the-bus", "gpu5", "kernel_log", "gpu 0000:c3:00.0", "power the node off and on", "165000010005"),
    Case("memory-errors", "DIMM A3", "memory_errors", "A3 (channel 1 slot 0)", "replace it"),
    Case("nvlink-down", "gpu4", "nvlink", "gpu 4", "reseat the GPU", "165000010004"),
    Case("old-nic-firmware", "mlx5_3", "hca_firmware", "mlx5_3", "update the firmware", "MT2340000103"),
    Case("pcie-width", "gpu2", "pcie_width", "gpu 2", "reseat the GPU", "165000010002"),
    Case("pcie-width", "mlx5_2", "pcie_width", "hca 0000:4f:00.0", "reseat the adapter"),
    Case("port-errors", "mlx5_6", "hca_errors", "mlx5_6", "clean", "MT2340000106"),
    Case("row-remap-failure", "gpu1", "gpu_row_remap", "gpu 1", "replace the GPU", "165000010001"),
    Case("slow-nvme", "bay1", "nvme_read", "nvme1n1 (Dell DC NVMe PM9A3)", "replace it if it stays so", "NVME00011"),
    Case("slow-cores", "", "cpu_frequency", "node", "profile to performance"),
    Case("uncorrectable-ecc", "gpu3", "kernel_log", "gpu 3", "reset the GPU", "165000010003"),
    Case("wrong-memory", "DIMM A3", "stress_ng", "A3 (channel 1 slot 0)", "reseat the module"),
    Case("weak-light", "mlx5_5", "transceivers", "mlx5_5", "clean and inspect"),
    Case(
        *("worn-nvme", "bay2", "nvme_health", "nvme2n1 (Dell DC NVMe PM9A3)"),
        *("replace the drive with serial NVME00012", "NVME00012"),
    ),
    Case("other-psid", "mlx5_6", "site_firmware", "mlx5_6", "that was ordered", "MT2340000106"),
    Case("no-container-gpus", "", "docker_gpu", "node", "nvidia-ctk runtime configure"),
    Case("unhealthy-container", "", "monitoring_containers", "container dcgm-exporter", "docker logs dcgm-exporter"),
    Case("another-machine", "", "identity", "node", "service tag"),
    Case("cpu-disabled", "", "cpu_count", "node", "BIOS set-up"),
    Case("driver-lost", "", "nvidia_driver", "node", "see dmesg"),
    Case("ecc-off", "gpu4", "gpu_ecc", "gpu 4", "--ecc-config=1", "165000010004"),
    Case("gpu-in-use", "gpu5", "gpu_idle", "gpu 5", "end the processes", "165000010005"),
    Case("lost-dimm", "DIMM A3", "memory_size", "node", "see that each slot"),
    Case("port-not-active", "mlx5_3", "hca_link", "mlx5_3", "subnet manager runs"),
    Case("swap-on", "", "swap_off", "node", "swapoff -a"),
    Case("no-peermem", "", "gpudirect_rdma", "node", "load nvidia-peermem"),
    Case("iommu-translates", "", "gpudirect_rdma", "node", "iommu=pt"),
    Case("xid", "gpu3=74", "kernel_log", "gpu 3", "nvlink", "165000010003"),
    Case("xid", "gpu6", "kernel_log", "gpu 6", "reset the GPU", "165000010006"),
)


def machine() -> Machine:
    return healthy(build(1, Layout(IPv4Network("10.88.0.0/16")), "unused"), 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.fault}-{case.part}")
def test_a_fault_is_one_root(case: Case, tmp_path: Path) -> None:
    """Whatever else suffers from it is told as its consequence, and every other check passes."""
    broken = find(case.fault).apply(machine(), case.part)
    roots = Report("burnin", "bootstrap", findings(broken, tmp_path)).roots()
    assert [(root.check, root.subject, root.verdict, root.serial) for root in roots] == [
        (case.check, case.subject, Verdict.FAIL, case.serial)
    ]
    assert case.remedy in roots[0].remedy


@pytest.mark.parametrize("fault", sorted({case.fault for case in CASES if case.part}))
def test_without_a_part_the_first_one_breaks_and_an_unknown_one_is_refused(fault: str) -> None:
    """The person is told which parts there are."""
    assert find(fault).apply(machine(), "").faults
    with pytest.raises(UsageError, match="has no gpu9"):
        find(fault).apply(machine(), "gpu9")


@pytest.mark.parametrize("code", ["13", "79", "", "x"])
def test_an_xid_that_says_nothing_of_the_hardware_is_refused(code: str) -> None:
    """The lab has no line for it, or it would rightly keep nobody from gold; empty means the usual one."""
    if not code:
        assert find("xid").apply(machine(), "gpu0=").gpus[0].xids == (119,)
        return
    with pytest.raises(UsageError, match="knows no Xid"):
        find("xid").apply(machine(), f"gpu0={code}")
