"""How virtual metal is delivered: with a virtual machine's processor and memory, and every drive as large as the root
disk, so that no rule by size helps.

In machines with an even number the root disk stands between two data drives, in the others before them.
"""

from __future__ import annotations

from dataclasses import replace

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
