"""A root file system that the kernel has turned read-only, as ext4 does after an error of its disk."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, read_only=True)).with_fault("read-only-root")


FAULT = Fault(
    name="read-only-root",
    does="mounts the root file system read-only",
    shows="findmnt shows ro; each write to it fails with EROFS",
    target="NODE",
    apply=_apply,
)
