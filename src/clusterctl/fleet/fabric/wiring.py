"""A wiring plan: which port shall be cabled to which, by the names that people use."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Location, Mac


@dataclass(frozen=True, slots=True, order=True)
class PortName:
    """`leaf-p1-r1` port `12`, or `node007` port `mlx5_0`."""

    device: str
    port: str

    def __str__(self) -> str:
        return f"{self.device} port {self.port}" if self.port.isdigit() else f"{self.device} {self.port}"


class Cabled(Protocol):
    """A cable of whatever kind, planned or seen, by its two ends."""

    @property
    def ends(self) -> frozenset[PortName]: ...


@dataclass(frozen=True, slots=True)
class PlannedCable:
    """`cage` is the label beside the switch's port (the source's, where both ends are switches); `rail` the name of the
    rail that a host's cable belongs to, where the plan tells; `line` where the plan says so (1-based, for messages).
    """

    source: PortName
    destination: PortName
    cage: str = ""
    serial: str = ""
    length_m: float | None = None
    line: int = 0
    rail: str = ""

    @property
    def ends(self) -> frozenset[PortName]:
        return frozenset((self.source, self.destination))

    @property
    def labelled(self) -> PortName:
        """The port that `cage` is about."""
        return self.source if self.source.port.isdigit() else self.destination


@dataclass(frozen=True, slots=True)
class WiringPlan:
    """Every cable that shall be. No port carries two cables, no cable is listed twice.

    `hosts` are the devices that are servers (all others are switches); `locations` where devices stand, if told; `macs`
    the hardware addresses of Ethernet ports, if told.
    """

    cables: tuple[PlannedCable, ...]
    hosts: frozenset[str]
    locations: Mapping[str, Location] = field(default_factory=dict)
    macs: Mapping[PortName, Mac] = field(default_factory=dict)


def leaves_of_hosts(plan: WiringPlan) -> Mapping[str, str]:
    """Return for each host the leaf switches that it is cabled to, in one name: hosts with the same name share them."""
    switches: dict[str, set[str]] = {}
    for cable in plan.cables:
        for own, other in itertools.permutations((cable.source.device, cable.destination.device)):
            if own in plan.hosts and other not in plan.hosts:
                switches.setdefault(own, set()).add(other)
    return {name: _named(sorted(its, key=natural_key)) for name, its in sorted(switches.items())}


def _named(switches: Sequence[str]) -> str:
    return switches[0] if len(switches) == 1 else f"{switches[0]} to {switches[-1]} ({len(switches)} switches)"


@dataclass(frozen=True, slots=True)
class Placement:
    """Line `line` says that `device` stands at `location`."""

    device: str
    location: Location
    line: int


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """What a plan file lists, contradictions included.

    `columns` are what the file calls the two ports of a cable (empty where it has no columns); `models` are kinds of
    devices (`QM9700`), by device, where the file tells.
    """

    file: str
    cables: tuple[PlannedCable, ...]
    hosts: frozenset[str]
    placements: tuple[Placement, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    macs: Mapping[PortName, Mac] = field(default_factory=dict)
    columns: tuple[str, str] = ("", "")

    def at(self, line: int, column: str = "") -> str:
        """`wiring.csv:12 source_port`."""
        return f"{self.file}:{line} {column}".rstrip()


def settle(draft: PlanDraft) -> WiringPlan:
    """The draft as a plan. Raises `UsageError` where a port is used twice, or a device stands in two places."""
    taken: dict[PortName, PlannedCable] = {}
    for cable in draft.cables:
        for end, column in zip((cable.source, cable.destination), draft.columns, strict=True):
            other = taken.get(end)
            if other is not None:
                message = f"{end} is already planned on line {other.line}"
                remedy = "give each port one cable, and list each cable once"
                raise UsageError(message, where=draft.at(cable.line, column), remedy=remedy)
            taken[end] = cable
    locations: dict[str, Location] = {}
    for placement in draft.placements:
        known = locations.setdefault(placement.device, placement.location)
        if known != placement.location:
            message = f"{placement.device} stands in {placement.location} here and in {known} above"
            column = "rack" if draft.columns[0] else ""
            where = draft.at(placement.line, column)
            raise UsageError(message, where=where, remedy="give each device one rack and unit")
    return WiringPlan(draft.cables, draft.hosts, locations, draft.macs)
