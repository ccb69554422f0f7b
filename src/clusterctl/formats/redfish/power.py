"""Power: where the machine stands, and which resets it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, ReadRequest, RedfishTree, Resource, normal

_RESET = "#ComputerSystem.Reset"


@dataclass(frozen=True, slots=True)
class PowerControl:
    """`state` as the BMC writes it (`On`, `Off`, `PoweringOn`, empty); `allowed` the reset types it takes, or all."""

    path: str
    serial: Serial
    state: str
    target: str
    allowed: frozenset[str]

    def first(self, *wanted: str) -> str | None:
        """Return the first of the reset types that this BMC takes. A BMC without a list takes all."""
        return next((kind for kind in wanted if not self.allowed or kind in self.allowed), None)


def read_power(answers: Answers) -> PowerControl | ReadRequest:
    """Return the power state and how to reset. Raises `ParseError` or `EdgeError` where the machine is not reported."""
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        serial = serial_of(tree, host)
        allowed = _allowed(tree, host)
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    action = host.text("Actions", _RESET, "target") or f"{host.path}/Actions/ComputerSystem.Reset"
    target = normal(action, host.where("Actions", _RESET, "target"))
    return PowerControl(host.path, serial, host.term("PowerState"), target, allowed)


def _allowed(tree: RedfishTree, host: Resource) -> frozenset[str]:
    listed = host.texts("Actions", _RESET, "ResetType@Redfish.AllowableValues")
    info = host.text("Actions", _RESET, "@Redfish.ActionInfo")
    if listed or not info:
        return frozenset(listed)
    try:
        parameters = tree.get(normal(info, host.where("Actions", _RESET))).each("Parameters")
    except (ParseError, EdgeError):
        return frozenset()  # an ActionInfo that cannot be read forbids nothing
    return frozenset(kind for p in parameters if p.text("Name") == "ResetType" for kind in p.texts("AllowableValues"))


_FULL = "FullPowerCycle"
_OEM = ("AuxCycle", "AuxPowerCycle", "AuxPowerCycleForce", "ACPowerCycle", "ACCycle", _FULL)
"""Reset types that take all power: HPE, NVIDIA (both), Lenovo, Supermicro, DMTF."""
_DELL = "ExtendedReset"
_NVIDIA = "AuxPowerReset"


@dataclass(frozen=True, slots=True)
class AcCycle:
    """`target` empty: this BMC has no such action."""

    serial: Serial
    target: str
    body: Mapping[str, Any]


def read_ac_cycle(answers: Answers) -> AcCycle | ReadRequest:
    """Return the action that takes all power, wherever the BMC has it.

    Raises `ParseError` or `EdgeError` where the machine is not reported.
    """
    power = read_power(answers)
    if isinstance(power, ReadRequest):
        return power
    if _FULL in power.allowed:
        return AcCycle(power.serial, power.target, {"ResetType": _FULL})
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        holders = (host, *_chassis(tree, host))
        found = next((way for holder in holders for way in _ways(tree, holder)), ("", {}))
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    return AcCycle(power.serial, *found)


def _chassis(tree: RedfishTree, host: Resource) -> tuple[Resource, ...]:
    """Return the System's chassis first, then the others: NVIDIA has the action at one that no System names."""
    try:
        linked = tree.all(host.links("Links", "Chassis"))
    except (EdgeError, ParseError):
        linked = ()  # the System's own actions remain
    try:
        others = tree.members(tree.root, "Chassis")
    except (EdgeError, ParseError):
        others = ()
    known = {one.path for one in linked}
    return (*linked, *(one for one in others if one.path not in known and _is_nvidias(one)))


def _is_nvidias(holder: Resource) -> bool:
    return any(name.endswith(_NVIDIA) for name, _ in _actions(holder))


def _kinds(tree: RedfishTree, holder: Resource, name: str, action: Mapping[str, Any]) -> list[Any]:
    """Return the reset types that the action takes, by its own list or by its ActionInfo."""
    listed, info = action.get("ResetType@Redfish.AllowableValues"), action.get("@Redfish.ActionInfo")
    usual = ["AuxPowerCycle"] if name.endswith(_NVIDIA) else []
    if isinstance(listed, list) or not isinstance(info, str):
        return listed if isinstance(listed, list) else usual
    try:
        parameters = tree.get(normal(info, holder.where(name))).each("Parameters")
        return [kind for one in parameters if one.text("Name") == "ResetType" for kind in one.texts("AllowableValues")]
    except (ParseError, EdgeError):
        return usual


def _ways(tree: RedfishTree, holder: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield target and body of each action of this System or Chassis that takes all power."""
    for name, action in _actions(holder):
        target = action.get("target")
        if not isinstance(target, str):
            continue
        kinds = _kinds(tree, holder, name, action)
        if name.endswith(_DELL) and "PowerCycle" in kinds:
            yield normal(target, holder.where(name)), {"ResetType": "PowerCycle", "FinalPowerState": "Off"}
        for kind in _OEM:
            if kind in kinds:
                yield normal(target, holder.where(name)), {"ResetType": kind}


def _actions(holder: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the standard actions and the vendors', in any of their places."""
    oem = holder.value("Oem")
    places = [holder.value("Actions"), holder.value("Actions", "Oem")]
    places += (
        [own.get("Actions") for own in oem.values() if isinstance(own, Mapping)] if isinstance(oem, Mapping) else []
    )
    for place in places:
        for name, action in place.items() if isinstance(place, Mapping) else ():
            if isinstance(action, Mapping):
                yield name, action
