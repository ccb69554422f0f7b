"""A host that came up without one of its file systems, because its table of mounts lets it (`nofail`)."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, mount_lost=True)).with_fault("lost-mount")


FAULT = Fault(
    name="lost-mount",
    does="the host's /etc/fstab names a file system, with nofail, whose drive is not there",
    shows="findmnt lists nothing at /scratch",
    target="NODE",
    apply=_apply,
)
