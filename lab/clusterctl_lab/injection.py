"""What `lab inject` and `lab up --fault` take: a fault of the machine, or bad manners of its BMC.

A fault must be found; a client should cope with bad manners. So they are kept apart: manners are data on the BMC, given
by the name `bmc-manners` and the target `NODE:MANNER,…`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab import faults
from clusterctl_lab.bmc_quirk import Manner
from clusterctl_lab.faults.fault import Fault
from clusterctl_lab.faults.registry import NO_MORE
from clusterctl_lab.machine import Machine

BMC_MANNERS = "bmc-manners"
_RANGE = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")


def inject_all(
    machines: Mapping[str, Machine], what: str, target: str, more: Mapping[str, Fault] = NO_MORE
) -> tuple[Machine, ...]:
    """The machine that `target` names, broken, and whoever is broken with it; `more` are faults of this lab only."""
    if what != BMC_MANNERS:
        return faults.inject_all(machines, what, target, more)
    node, _, manners = target.partition(":")
    if not node or not manners:
        remedy = f"write NODE:MANNER,…, with: {', '.join(manner.value for manner in Manner)}"
        raise UsageError(f"{target!r} names no node with manners", where="target", remedy=remedy)
    machine = faults.machine_named(machines, node)
    for manner in manners.split(","):
        machine = _with_manner(machine, manner.strip())
    return (machine,)


def bmc_manners(machine: Machine) -> tuple[str, ...]:
    """The manners that its BMC has, as `lab status` shows them."""
    return tuple(f"{BMC_MANNERS}:{manner.value}" for manner in Manner if manner in machine.bmc.manners)


def injected(machine: Machine, what: str) -> str:
    """What has just been injected into the machine, for a person."""
    return ", ".join(bmc_manners(machine)) if what == BMC_MANNERS else machine.faults[-1]


def _with_manner(machine: Machine, text: str) -> Machine:
    name, _, option = text.partition("=")
    known = {manner.value: manner for manner in Manner}
    if name not in known:
        raise UsageError(f"there is no manner {name!r}", where="target", remedy=f"choose from: {', '.join(known)}")
    manner = known[name]
    bmc = replace(machine.bmc, manners=machine.bmc.manners | {manner})
    if option:
        bmc = replace(bmc, latency_s=_latency(manner, option))
    return replace(machine, bmc=bmc)


def _latency(manner: Manner, text: str) -> tuple[float, float]:
    found = _RANGE.fullmatch(text)
    if manner is not Manner.SLOW or found is None or float(found[1]) > float(found[2]):
        raise UsageError(
            f"{manner.value} takes no {text!r}",
            where="target",
            remedy="only slow takes a range: slow=0.05-0.3, in seconds",
        )
    return float(found[1]), float(found[2])
