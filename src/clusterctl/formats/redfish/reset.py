"""Power: where the machine stands, and which resets it takes."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.tree import Answers, NotYetReadError, Resource, Tree, Wanted, normal

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
        """The first of the reset types that this BMC takes; one that tells no list is taken at its word."""
        return next((kind for kind in wanted if not self.allowed or kind in self.allowed), None)


def read_power(answers: Answers) -> PowerControl | Wanted:
    """Raises `ParseError` or `EdgeError` where it is not told which machine this is."""
    tree = Tree(answers)
    try:
        host = system.host_system(tree)
        serial = system.serial_of(tree, host)
        allowed = _allowed(tree, host)
    except NotYetReadError:
        return Wanted(tuple(tree.wanted))
    told = host.text("Actions", _RESET, "target") or f"{host.path}/Actions/ComputerSystem.Reset"
    target = normal(told, host.where("Actions", _RESET, "target"))
    return PowerControl(host.path, serial, host.text("PowerState"), target, allowed)


def _allowed(tree: Tree, host: Resource) -> frozenset[str]:
    listed = host.texts("Actions", _RESET, "ResetType@Redfish.AllowableValues")
    info = host.text("Actions", _RESET, "@Redfish.ActionInfo")
    if listed or not info:
        return frozenset(listed)
    try:
        parameters = tree.get(normal(info, host.where("Actions", _RESET))).each("Parameters")
    except (ParseError, EdgeError):
        return frozenset()  # an ActionInfo that cannot be read forbids nothing
    return frozenset(kind for p in parameters if p.text("Name") == "ResetType" for kind in p.texts("AllowableValues"))
