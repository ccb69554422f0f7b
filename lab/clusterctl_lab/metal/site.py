"""What the site directory of virtual metal has that others do not: kinds of machines, and where OS images lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from clusterctl_lab.machine import Machine
from clusterctl_lab.metal.command_line import MEMORY_MIB


def as_metal(machine: Machine) -> Machine:
    """The machine with drives, processor and memory of virtual metal: serials, models and slots stay its own."""
    root = [drive for drive in machine.drives if drive.boot]
    data = [drive for drive in machine.drives if not drive.boot]
    drives = (*data[:1], *root, *data[1:]) if machine.index % 2 == 0 else (*root, *data)
    return replace(
        machine,
        drives=tuple(replace(drive, size_bytes=root[0].size_bytes) for drive in drives),
        cpus=1,
        cores=1,
        dimms=tuple(replace(dimm, size_mib=MEMORY_MIB) for dimm in machine.dimms[:1]),
    )


BOOT_FOLDER = Path("/var/cache/clusterctl-lab/boot")
"""Shared by all labs of this machine, and kept for the next one."""
HCA_NAMES = ("ConnectX-7", "MCX75310AAS")
"""What the vendors' BMCs call the same card: NVIDIA's name of it, or its part number."""
_SKU = """\
# A machine of this rehearsal lab: its drives are all of one size, and the root disk is known by its model.
name: {name}
manufacturer: {manufacturer}
model: {model}
gpu_count: {gpus}
gpu_model: H100
hca_count: {hcas}
hca_model: {hca_model}
hca_rate_gbps: {hca_rate}
cpu_count: {cpus}
memory_gib: {memory}
data_drive_count: {data}
root_disk: {{model: {root}}}
limits: lab-metal
"""


def metal_skus(machines: Iterable[Machine]) -> Iterator[tuple[str, str]]:
    """Name and content of a SKU file for each kind of machine."""
    yield from {_name(machine): _sku(machine) for machine in machines}.items()


def _name(machine: Machine) -> str:
    return f"metal-{machine.bmc.vendor.value}"


def _sku(machine: Machine) -> str:
    roots = [drive for drive in machine.drives if drive.boot]
    return _SKU.format(
        name=_name(machine),
        manufacturer=machine.manufacturer,
        model=machine.model,
        gpus=len(machine.gpus),
        hcas=len(machine.hcas),
        hca_model=next(name for name in HCA_NAMES if name in machine.hcas[0].model),
        hca_rate=machine.hcas[0].rate_gbps,
        cpus=machine.cpus,
        memory=machine.memory_gib,
        data=len(machine.drives) - len(roots),
        root=roots[0].model,
    )
