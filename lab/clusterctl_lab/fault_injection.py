"""What `lab inject` and `lab up --fault` take: a fault of the machine, or quirks of its BMC or of MAAS.

clusterctl must find a fault, and its client should cope with a quirk. Quirks are data of the machine; their names are
`bmc-quirks` and `maas-quirks`, and their target is `NODE:QUIRK,…`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab import faults
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.faults.fault import Fault
from clusterctl_lab.faults.registry import NO_MORE
from clusterctl_lab.maas_quirk import MaasQuirk
from clusterctl_lab.machine import Machine

BMC_QUIRKS = "bmc-quirks"
MAAS_QUIRKS = "maas-quirks"
_RANGE = re.compile(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)")


def inject_all(
    machines: Mapping[str, Machine], what: str, target: str, more: Mapping[str, Fault] = NO_MORE
) -> tuple[Machine, ...]:
    """Return the broken machine and its partner, if it has one; `more` are faults of this lab only."""
    if what not in (BMC_QUIRKS, MAAS_QUIRKS):
        return faults.inject_all(machines, what, target, more)
    with_quirk, known = (_with_quirk, BmcQuirk) if what == BMC_QUIRKS else (_with_maas_quirk, MaasQuirk)
    node, _, quirks = target.partition(":")
    if not node or not quirks:
        remedy = f"write NODE:QUIRK,…, with: {', '.join(quirk.value for quirk in known)}"
        raise UsageError(f"{target!r} names no node with quirks", where="target", remedy=remedy)
    machine = faults.machine_named(machines, node)
    for quirk in quirks.split(","):
        machine = with_quirk(machine, quirk.strip())
    return (machine,)


def bmc_quirks(machine: Machine) -> tuple[str, ...]:
    """Return the quirks of the machine's BMC, as `lab status` shows them."""
    return tuple(f"{BMC_QUIRKS}:{quirk.value}" for quirk in BmcQuirk if quirk in machine.bmc.quirks)


def maas_quirks(machine: Machine) -> tuple[str, ...]:
    """Return the quirks of MAAS that the machine has, as `lab status` shows them."""
    return tuple(f"{MAAS_QUIRKS}:{quirk.value}" for quirk in MaasQuirk if quirk in machine.maas_quirks)


def injected(machine: Machine, what: str) -> str:
    """Return the label of what was injected last."""
    if what == MAAS_QUIRKS:
        return ", ".join(maas_quirks(machine))
    return ", ".join(bmc_quirks(machine)) if what == BMC_QUIRKS else machine.faults[-1]


def _with_maas_quirk(machine: Machine, name: str) -> Machine:
    known = {quirk.value: quirk for quirk in MaasQuirk}
    if name not in known:
        raise UsageError(f"there is no quirk {name!r}", where="target", remedy=f"choose from: {', '.join(known)}")
    return replace(machine, maas_quirks=machine.maas_quirks | {known[name]})


def _with_quirk(machine: Machine, text: str) -> Machine:
    name, _, option = text.partition("=")
    known = {quirk.value: quirk for quirk in BmcQuirk}
    if name not in known:
        raise UsageError(f"there is no quirk {name!r}", where="target", remedy=f"choose from: {', '.join(known)}")
    quirk = known[name]
    bmc = replace(machine.bmc, quirks=machine.bmc.quirks | {quirk})
    if option:
        bmc = replace(bmc, latency_s=_latency(quirk, option))
    return replace(machine, bmc=bmc)


def _latency(quirk: BmcQuirk, text: str) -> tuple[float, float]:
    found = _RANGE.fullmatch(text)
    if quirk is not BmcQuirk.SLOW or found is None or float(found[1]) > float(found[2]):
        raise UsageError(
            f"{quirk.value} takes no {text!r}",
            where="target",
            remedy="only slow takes a range: slow=0.05-0.3, in seconds",
        )
    return float(found[1]), float(found[2])
