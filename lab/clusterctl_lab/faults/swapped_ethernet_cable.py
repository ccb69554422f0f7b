"""Two hosts' management cables plugged into each other's port of their switches: both links are up."""

from __future__ import annotations

import re
from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.ethernet import HOSTS_PER_RACK, host_port
from clusterctl_lab.faults.fault import Fault, Target
from clusterctl_lab.machine import Machine

_NAME = "swapped-ethernet-cable"
_NODE = re.compile(r"node0*([1-9][0-9]{0,3})")


def _apply(machine: Machine, part: str) -> Machine:
    """Only this machine's cable; the other's is moved by `_partner`'s word."""
    other = part or f"node{_next_in_rack(machine.index):03d}"
    match = _NODE.fullmatch(other)
    if match is None or other == machine.name:
        raise UsageError(
            f"{other} is no other node", where=machine.name, remedy="write NODE:OTHER, like node001:node002"
        )
    if machine.network != host_port(machine.index):
        raise UsageError("its cable is not in its own port", where=machine.name, remedy=f"heal {machine.name} first")
    return replace(machine, network=host_port(int(match[1]))).with_fault(f"{_NAME}:{other}")


def _next_in_rack(index: int) -> int:
    """The place above; of the topmost one the lowest."""
    rack, place = divmod(index - 1, HOSTS_PER_RACK)
    return rack * HOSTS_PER_RACK + (place + 1) % HOSTS_PER_RACK + 1


def _partner(machine: Machine, part: str) -> Target:
    return Target(part, machine.name)


FAULT = Fault(
    name=_NAME,
    does="swaps the management cables of two hosts at their switch (the next in the rack where none is named)",
    shows="lldpctl on both, against the Ethernet plan; every link stays up",
    target="NODE or NODE:OTHER",
    apply=_apply,
    partner=_partner,
)
