"""A PCIe switch that sends traffic between its GPU and its adapter through the processor: ACS is on."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    return with_hca(machine, replace(hca, switch_redirects=True)).with_fault(f"acs-on:{hca.name}")


FAULT = Fault(
    name="acs-on",
    does="PCIe Access Control Services are on in the switch above an HCA and a GPU (of the first HCA's)",
    shows="lspci -vvv and setpci for the switch's lower ports",
    target="NODE or NODE:mlx5_2",
    apply=_apply,
)
