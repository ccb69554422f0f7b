"""Faults of cables: missing, swapped, or plugged into another leaf."""

from __future__ import annotations

import re
from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.ethernet import HOSTS_PER_RACK, host_port
from clusterctl_lab.faults.fault import Fault, Target, hca_named, no_such_part, with_hca
from clusterctl_lab.machine import HOSTS_PER_LEAF, Machine, SwitchPort, leaf

FIRST_FREE_PORT = 41
"""Ports of a leaf: hosts 1 to 32, trunks 33 to 40; the wiring plan uses none above (topology.py)."""
FREE_PORTS = 24
_SWAPPED_ETHERNET = "swapped-ethernet-cable"
_NODE = re.compile(r"node0*([1-9][0-9]{0,3})")


def _missing_cable(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    if hca.cable is None:
        raise UsageError(f"{hca.name} has no cable", where=machine.name, remedy=f"heal {machine.name} first")
    return with_hca(machine, replace(hca, cable=None)).with_fault(f"missing-cable:{hca.name}")


def _swapped_cable(machine: Machine, part: str) -> Machine:
    hcas = {hca.name: hca for hca in machine.hcas}
    names = tuple(part.split(",")) if part else tuple(hcas)[:2]
    for name in names:
        if name not in hcas:
            raise no_such_part(machine, name, tuple(hcas))
    if len(set(names)) != 2:
        raise UsageError(
            "two different HCAs are needed to swap their cables",
            where=machine.name,
            remedy="write NODE:mlx5_0,mlx5_1; the lab's machines need at least two rails",
        )
    first, second = (hcas[name] for name in names)
    if first.cable == second.cable:
        raise UsageError("neither HCA has a cable", where=machine.name, remedy=f"heal {machine.name} first")
    hcas[first.name] = replace(first, cable=second.cable)
    hcas[second.name] = replace(second, cable=first.cable)
    return replace(machine, hcas=tuple(hcas.values())).with_fault(f"swapped-cable:{first.name},{second.name}")


def _wrong_rail_cable(machine: Machine, part: str) -> Machine:
    hca = hca_named(machine, part)
    rails = [other.rail for other in machine.hcas if other.rail != hca.rail]
    if not rails:
        raise UsageError("has one rail only", where=machine.name, remedy="start the lab with more --rails")
    pod, place = divmod(machine.index - 1, HOSTS_PER_LEAF)
    rail = next((rail for rail in rails if rail > hca.rail), rails[0])
    wrong = SwitchPort(leaf(rail, pod), FIRST_FREE_PORT + place % FREE_PORTS)
    return with_hca(machine, replace(hca, cable=wrong)).with_fault(f"wrong-rail-cable:{hca.name}")


def _swapped_ethernet_cable(machine: Machine, part: str) -> Machine:
    """Move this machine's cable only; `partner` names the machine whose cable moves too."""
    other = part or f"node{_next_in_rack(machine.index):03d}"
    match = _NODE.fullmatch(other)
    if match is None or other == machine.name:
        raise UsageError(
            f"{other} is no other node", where=machine.name, remedy="write NODE:OTHER, like node001:node002"
        )
    if machine.network != host_port(machine.index):
        raise UsageError("its cable is not in its own port", where=machine.name, remedy=f"heal {machine.name} first")
    return replace(machine, network=host_port(int(match[1]))).with_fault(f"{_SWAPPED_ETHERNET}:{other}")


def _next_in_rack(index: int) -> int:
    """Return the index of the machine above; of the lowest one for the topmost."""
    rack, place = divmod(index - 1, HOSTS_PER_RACK)
    return rack * HOSTS_PER_RACK + (place + 1) % HOSTS_PER_RACK + 1


FAULTS = (
    Fault(
        name="missing-cable",
        does="removes the cable of one HCA (default: the first HCA)",
        shows="ibnetdiscover: both ports have no peer; ibstat: Down, Polling",
        target="NODE or NODE:mlx5_3",
        apply=_missing_cable,
    ),
    Fault(
        name="swapped-cable",
        does="swaps the far ends of two HCAs' cables (default: the first two HCAs)",
        shows="ibnetdiscover against the wiring plan; every link stays up",
        target="NODE or NODE:mlx5_0,mlx5_1",
        apply=_swapped_cable,
    ),
    Fault(
        name=_SWAPPED_ETHERNET,
        does="swaps the management cables of two hosts at their switch (default: with the next host in the rack)",
        shows="lldpctl on both, against the Ethernet plan; every link stays up",
        target="NODE or NODE:OTHER",
        apply=_swapped_ethernet_cable,
        partner=lambda machine, part: Target(part, machine.name),
    ),
    Fault(
        name="wrong-rail-cable",
        does="plugs the cable of one HCA into a free port of the next rail's leaf (default: the first HCA)",
        shows="ibnetdiscover against the wiring plan; the link is up at its full rate",
        target="NODE or NODE:mlx5_3",
        apply=_wrong_rail_cable,
    ),
)
