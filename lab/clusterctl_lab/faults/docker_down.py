"""A host that can start no container: its Docker daemon is stopped."""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.faults.fault import Fault, refuse_part
from clusterctl_lab.machine import Machine


def _apply(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, system=replace(machine.system, docker_stopped=True)).with_fault("docker-down")


FAULT = Fault(
    name="docker-down",
    does="stops docker.service",
    shows="docker info cannot connect to the daemon; systemctl says inactive",
    target="NODE",
    apply=_apply,
)
