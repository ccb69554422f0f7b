"""How virtual metal is delivered: every drive of a machine as large as its root disk, so that no rule by size helps.

In machines with an even number the root disk stands between two data drives, in the others before them.
"""

from __future__ import annotations

from dataclasses import replace

from clusterctl.lab.machine import Machine


def as_metal(machine: Machine) -> Machine:
    """The machine with its drives as virtual metal has them: serials, models and slots stay its own."""
    root = [drive for drive in machine.drives if drive.boot]
    data = [drive for drive in machine.drives if not drive.boot]
    drives = (*data[:1], *root, *data[1:]) if machine.index % 2 == 0 else (*root, *data)
    return replace(machine, drives=tuple(replace(drive, size_bytes=root[0].size_bytes) for drive in drives))
