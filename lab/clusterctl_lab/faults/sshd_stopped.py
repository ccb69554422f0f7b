"""A host that runs well and lets nobody in: its SSH server is stopped, and does not come back."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, sshd_stopped=True)).with_fault("sshd-stopped")


FAULT = Fault(
    name="sshd-stopped",
    does="stops the SSH server with all its sessions",
    shows="port 22 refuses connections; the BMC says that power is on",
    target="NODE",
    apply=_apply,
)
