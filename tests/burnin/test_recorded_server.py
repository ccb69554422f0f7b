"""No false finding on a recorded server of 8 x H100: its PCI tree, and nvidia-smi's output about its GPUs."""

from __future__ import annotations

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl_burnin.registry import CHECKS
from tests.burnin.kit import expected, readings, result
from tests.fleet.skus import H100_X8
from tests.formats.samples import sample

FROM_LSPCI = ("gpudirect_rdma", "pcie_chain")
FROM_NVIDIA_SMI = ("fabric_manager", "gpu_firmware", "gpu_persistence", "gpu_temperature")


@pytest.mark.parametrize("check", FROM_LSPCI)
def test_its_pci_tree(check: str) -> None:
    """Eight GPUs and eight ConnectX-7 below switches that are connected at x16 and redirect nothing."""
    recorded = readings(lspci=lambda _: sample("lspci-vvv.gz"))
    found = CHECKS[check].findings(recorded, expected(sku=H100_X8))
    assert [finding.verdict for finding in found] == [Verdict.PASS], found


@pytest.mark.parametrize("check", FROM_NVIDIA_SMI)
def test_its_gpus(check: str) -> None:
    """One firmware, persistence mode on, all in the fabric, 29 °C or so."""
    version = result("fabric_manager_version", "Fabric Manager version is : 535.161.08\n")
    recorded = readings(
        nvidia_smi=lambda _: sample("nvidia-smi-query.535.161.08.out.0.valid"), fabric_manager_version=version
    )
    found = CHECKS[check].findings(recorded, expected(sku=H100_X8, driver_version="535.161.08"))
    assert [finding.verdict for finding in found] == [Verdict.PASS], found
