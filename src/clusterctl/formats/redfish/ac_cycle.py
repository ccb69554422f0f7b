"""Taking all power from a machine, its BMC's too, as firmware of GPUs, boards and BMCs may need it.

The standard has ResetType `FullPowerCycle` for it (DMTF Resource schema). Vendors have actions of their own: HPE's
HpeComputerSystemExt.SystemReset with `AuxCycle` (recorded), Dell's ExtendedReset of a chassis, NVIDIA's AuxPowerReset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.reset import read_power
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Resource, Tree, Wanted, normal

_FULL = "FullPowerCycle"
_OEM = ("AuxCycle", "AuxPowerCycle", "ACCycle", _FULL)
_DELL = "ExtendedReset"


@dataclass(frozen=True, slots=True)
class AcCycle:
    """`target` empty: this BMC has no such action."""

    serial: Serial
    target: str
    body: Mapping[str, Any]


def read_ac_cycle(answers: Answers) -> AcCycle | Wanted:
    """Raises `ParseError` or `EdgeError` where it is not told which machine this is."""
    power = read_power(answers)
    if isinstance(power, Wanted):
        return power
    if _FULL in power.allowed:
        return AcCycle(power.serial, power.target, {"ResetType": _FULL})
    tree = Tree(answers)
    try:
        host = system.host_system(tree)
        holders = (host, *_chassis(tree, host))
        found = next((way for holder in holders for way in _ways(holder)), ("", {}))
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    return AcCycle(power.serial, *found)


def _chassis(tree: Tree, host: Resource) -> tuple[Resource, ...]:
    try:
        return tree.all(host.links("Links", "Chassis"))
    except (EdgeError, ParseError):
        return ()  # the System's own actions remain


def _ways(holder: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Target and body of each action of this System or Chassis that takes all power."""
    for name, action in _actions(holder):
        target = action.get("target")
        if not isinstance(target, str):
            continue
        listed = action.get("ResetType@Redfish.AllowableValues")
        kinds = listed if isinstance(listed, list) else []
        if name.endswith(_DELL) and "PowerCycle" in kinds:
            yield normal(target, holder.where(name)), {"ResetType": "PowerCycle", "FinalPowerState": "Off"}
        for kind in _OEM:
            if kind in kinds:
                yield normal(target, holder.where(name)), {"ResetType": kind}


def _actions(holder: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The standard ones and the vendors', wherever they keep them."""
    oem = holder.value("Oem")
    places = [holder.value("Actions"), holder.value("Actions", "Oem")]
    places += (
        [own.get("Actions") for own in oem.values() if isinstance(own, Mapping)] if isinstance(oem, Mapping) else []
    )
    for place in places:
        for name, action in place.items() if isinstance(place, Mapping) else ():
            if isinstance(action, Mapping):
                yield name, action
