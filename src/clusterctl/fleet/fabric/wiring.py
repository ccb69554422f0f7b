"""A wiring plan: which port shall be cabled to which, by the plan's names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Location, Mac
from clusterctl.fleet.plain_numbers import is_number

_ON_BOARD = re.compile(r"([LS][0-9]{2}/U[0-9]{1,9})/([0-9]{1,9})$")


@dataclass(frozen=True, slots=True, order=True)
class PortName:
    """`leaf-p1-r1` port `12`, `node007` port `mlx5_0`, or `core-1` port `L16/U2/20`: board, chip and port of a chassis.

    Boards of a modular switch are `L01` (leaf, line) or `S01` (spine, fabric); the chassis is the device.
    """

    device: str
    port: str

    @property
    def on_switch(self) -> bool:
        """Whether it is a switch's port; else it is an adapter of a host."""
        return is_number(self.port) or _ON_BOARD.match(self.port) is not None

    @property
    def number(self) -> int:
        """The port's number on its switch, or on the chip of its board; 0 for an adapter."""
        if is_number(self.port):
            return int(self.port)
        match = _ON_BOARD.match(self.port)
        return int(match[2]) if match else 0

    @property
    def board(self) -> str:
        """Board and chip, `L16/U2`; empty where the device is no modular switch."""
        match = None if is_number(self.port) else _ON_BOARD.match(self.port)
        return match[1] if match else ""

    def __str__(self) -> str:
        if is_number(self.port):
            return f"{self.device} port {self.port}"
        match = _ON_BOARD.match(self.port)
        return f"{self.device} {match[1]} port {match[2]}" if match else f"{self.device} {self.port}"


def board_port(board: str, chip: int, port: int) -> str:
    """Return the name of a port of a modular switch: `L16/U2/20`. `board` is `L16`, `l1`, `S03` …"""
    return f"{board[0].upper()}{int(board[1:]):02}/U{chip}/{port}"


class Cabled(Protocol):
    """A cable of whatever kind, planned or seen, by its two ends."""

    @property
    def ends(self) -> frozenset[PortName]: ...


@dataclass(frozen=True, slots=True)
class PlannedCable:
    """`cage` is the label at the switch's port (the source's, where both ends are switches). `rail` is the name of the
    rail that a host's cable belongs to, where the plan has it; `line` the plan's line (1-based, for messages);
    `gbps` the rate that the link must have; `kind` the type of the cable.
    """

    source: PortName
    destination: PortName
    cage: str = ""
    serial: str = ""
    length_m: float | None = None
    line: int = 0
    rail: str = ""
    gbps: float | None = None
    kind: str = ""

    @property
    def ends(self) -> frozenset[PortName]:
        return frozenset((self.source, self.destination))

    @property
    def labelled(self) -> PortName:
        """The port that `cage` is about."""
        return self.source if self.source.on_switch else self.destination


@dataclass(frozen=True, slots=True)
class WiringPlan:
    """Every cable that shall be. No port carries two cables, no cable is listed twice.

    `hosts` are the devices that are servers (all others are switches); `locations` where devices stand, if known;
    `macs` the hardware addresses of Ethernet ports, if known.
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
    """`device` is at `location`, by line `line`."""

    device: str
    location: Location
    line: int


@dataclass(frozen=True, slots=True)
class PlanDraft:
    """What a plan file lists, contradictions included.

    `columns` are the file's names of the two ports of a cable (empty where it has no columns); `models` are kinds of
    devices (`QM9700`), by device, where the file has them; `notes` list what of the file was read in an unusual way.
    """

    file: str
    cables: tuple[PlannedCable, ...]
    hosts: frozenset[str]
    placements: tuple[Placement, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    macs: Mapping[PortName, Mac] = field(default_factory=dict)
    columns: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()

    def at(self, line: int, column: str = "") -> str:
        """Return `wiring.csv:12 source_port`."""
        return f"{self.file}:{line} {column}".rstrip()


def settle(*drafts: PlanDraft) -> WiringPlan:
    """Return the drafts as one plan.

    Device names that differ only in case are one device. A cable that two files list is one cable. Raises `UsageError`
    with file and line where a port is used twice, or a device stands in two places.
    """
    drafts = _one_spelling(drafts)
    taken: dict[PortName, tuple[PlannedCable, PlanDraft]] = {}
    cables = []
    for draft in drafts:
        for cable in draft.cables:
            known = taken.get(cable.source)
            if known is not None and known[1] is not draft and known[0].ends == cable.ends:
                continue
            _take(taken, cable, draft)
            cables.append(cable)
    hosts = frozenset(host for draft in drafts for host in draft.hosts)
    macs = {port: mac for draft in drafts for port, mac in draft.macs.items()}
    return WiringPlan(tuple(cables), hosts, _locations(drafts), macs)


def _take(taken: dict[PortName, tuple[PlannedCable, PlanDraft]], cable: PlannedCable, draft: PlanDraft) -> None:
    for end, column in zip((cable.source, cable.destination), draft.columns, strict=True):
        if end in taken:
            other, by = taken[end]
            at = f"line {other.line}" if by is draft else by.at(other.line)
            remedy = "give each port one cable, and list each cable once"
            raise UsageError(f"{end} is already planned on {at}", where=draft.at(cable.line, column), remedy=remedy)
        taken[end] = cable, draft


def _locations(drafts: Iterable[PlanDraft]) -> dict[str, Location]:
    locations: dict[str, tuple[Location, PlanDraft, int]] = {}
    for draft in drafts:
        for placement in draft.placements:
            known, by, line = locations.setdefault(placement.device, (placement.location, draft, placement.line))
            if known != placement.location:
                at = "above" if by is draft else f"in {by.at(line)}"
                message = f"{placement.device} stands in {placement.location} here and in {known} {at}"
                where = draft.at(placement.line, "rack" if draft.columns[0] else "")
                raise UsageError(message, where=where, remedy="give each device one rack and unit")
    return {device: location for device, (location, _, _) in locations.items()}


def _one_spelling(drafts: tuple[PlanDraft, ...]) -> tuple[PlanDraft, ...]:
    """Return the drafts with one spelling of each device name: the first one."""
    ends = (end for draft in drafts for cable in draft.cables for end in (cable.source, cable.destination))
    names = dict.fromkeys(end.device for end in ends)
    spelling: dict[str, str] = {}
    for name in names:
        spelling.setdefault(name.casefold(), name)
    if len(spelling) == len(names):
        return drafts
    return tuple(_respelled(draft, spelling) for draft in drafts)


def _respelled(draft: PlanDraft, spelling: Mapping[str, str]) -> PlanDraft:
    """Return a draft with the spelling of each device name by the folded name."""

    def spelled(name: str) -> str:
        return spelling.get(name.casefold(), name)

    def port(end: PortName) -> PortName:
        return PortName(spelled(end.device), end.port)

    return replace(
        draft,
        cables=tuple(replace(c, source=port(c.source), destination=port(c.destination)) for c in draft.cables),
        hosts=frozenset(map(spelled, draft.hosts)),
        placements=tuple(replace(place, device=spelled(place.device)) for place in draft.placements),
        models={spelled(device): model for device, model in draft.models.items()},
        macs={port(end): mac for end, mac in draft.macs.items()},
    )
