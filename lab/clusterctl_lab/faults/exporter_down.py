"""A host whose metrics nobody can read: its node_exporter is stopped."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, exporter_stopped=True)).with_fault("exporter-down")


FAULT = Fault(
    name="exporter-down",
    does="stops prometheus-node-exporter",
    shows="port 9100 refuses connections; systemctl says inactive",
    target="NODE",
    apply=_apply,
)
