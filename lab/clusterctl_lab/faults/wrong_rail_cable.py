"""A cable in a free port of another rail's leaf: the link is up, and its traffic crosses the spines."""

from __future__ import annotations

from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.faults.fault import Fault, hca_named, with_hca
from clusterctl_lab.machine import HOSTS_PER_LEAF, Machine, SwitchPort, leaf

FIRST_FREE_PORT = 41
"""Ports of a leaf: hosts 1 to 32, trunks 33 to 40; nothing is planned for those above (topology.py)."""
FREE_PORTS = 24


def _apply(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    rails = [other.rail for other in machine.hcas if other.rail != hca.rail]
    if not rails:
        raise UsageError("has one rail only", where=machine.name, remedy="start the lab with more --rails")
    pod, place = divmod(machine.index - 1, HOSTS_PER_LEAF)
    rail = next((rail for rail in rails if rail > hca.rail), rails[0])
    wrong = SwitchPort(leaf(rail, pod), FIRST_FREE_PORT + place % FREE_PORTS)
    return with_hca(machine, replace(hca, cable=wrong)).with_fault(f"wrong-rail-cable:{hca.name}")


FAULT = Fault(
    name="wrong-rail-cable",
    does="plugs the cable of one HCA into a free port of the next rail's leaf (the first HCA where none is named)",
    shows="ibnetdiscover against the wiring plan; the link is up at its full rate",
    target="NODE or NODE:mlx5_3",
    apply=_apply,
)
