"""Lengths and types of a planned fabric's cables, the labels for both their ends, and a bill of materials.

A length follows from the places of both ends: along the racks of a row, across rows, up and down in both racks, and
slack; it is rounded up to a length that is sold. Rooms differ: check it before ordering.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from clusterctl.cabling.generate.racks import RACK_UNITS
from clusterctl.fleet.csv_text import csv_text
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Location

COPPER, OPTICAL = "copper", "optical"
_UNIT_M, _RACK_M = 0.04445, 0.6
_COPPER_M = 3.0
"""Longest passive copper cable for NDR (NVIDIA LinkX data sheets, MCP4Y10)."""
_SOLD_M = (0.5, 1, 1.5, 2, 2.5, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150)
_RACK = re.compile(r"([A-Z]+)(\d+)$")


@dataclass(frozen=True, slots=True)
class RoomSize:
    """`row_pitch_m` is the distance between rows, `slack_m` what a cable needs at its two ends together."""

    row_pitch_m: float = 3.0
    slack_m: float = 1.0


def with_lengths(plan: WiringPlan, room: RoomSize) -> WiringPlan:
    """Return the plan with the length and type of each cable that has places at both ends."""
    return replace(plan, cables=tuple(_with_length(cable, plan, room) for cable in plan.cables))


def _with_length(cable: PlannedCable, plan: WiringPlan, room: RoomSize) -> PlannedCable:
    places = [plan.locations.get(end.device) for end in (cable.source, cable.destination)]
    if places[0] is None or places[1] is None:
        return cable
    needed = _distance(places[0], places[1], room) + room.slack_m
    length = next((sold for sold in _SOLD_M if sold >= needed), float(int(needed) + 1))
    return replace(cable, length_m=float(length), kind=COPPER if length <= _COPPER_M else OPTICAL)


def _distance(first: Location, second: Location, room: RoomSize) -> float:
    units = (first.unit or 1, second.unit or 1)
    if first.rack == second.rack:
        return abs(units[0] - units[1]) * _UNIT_M
    rise = sum((RACK_UNITS - unit) * _UNIT_M for unit in units)
    (row, column), (other_row, other_column) = _position(first.rack), _position(second.rack)
    return rise + abs(column - other_column) * _RACK_M + abs(row - other_row) * room.row_pitch_m


def _position(rack: str) -> tuple[int, int]:
    """Return row and column of a rack: `A01` is (1, 1), `AA03` (27, 3)."""
    match = _RACK.match(rack)
    if match is None:
        return 0, 0
    row = 0
    for letter in match[1]:
        row = 26 * row + ord(letter) - ord("A") + 1
    return row, int(match[2])


def labels_csv(plan: WiringPlan) -> str:
    """Return one line for each end of each cable: cable, where this end is, and where the other one is."""
    rows = (
        (f"{number:05}", _place(near, plan), _port(near, cable), _place(far, plan), _port(far, cable), *_about(cable))
        for number, cable in enumerate(plan.cables, start=1)
        for near, far in ((cable.source, cable.destination), (cable.destination, cable.source))
    )
    return csv_text((("cable", "place", "port", "far_place", "far_port", "length_m", "cable_type"), *rows))


def _place(end: PortName, plan: WiringPlan) -> str:
    return str(plan.locations.get(end.device, "")).removeprefix("rack ")


def _port(end: PortName, cable: PlannedCable) -> str:
    return f"{end} ({cable.cage})" if cable.cage and end == cable.labelled else str(end)


def _about(cable: PlannedCable) -> tuple[str, str]:
    return ("" if cable.length_m is None else f"{cable.length_m:g}", cable.kind)


def bill_of_materials(plan: WiringPlan, *, twin_cages: bool) -> str:
    """Return the numbers of switches, of cables by type and length, and of transceivers, as CSV.

    With twin cages one transceiver serves both ports of a switch's cage. A copper cable needs none.
    """
    ends = [(end, cable) for cable in plan.cables for end in (cable.source, cable.destination)]
    roles = Counter(device.partition("-")[0] for device in {end.device for end, _ in ends} - plan.hosts)
    items: list[tuple[str, str, int]] = [("switch", role, count) for role, count in sorted(roles.items())]
    items += _cables(plan)
    optical = [end for end, cable in ends if cable.kind == OPTICAL]
    items += _transceivers(optical, plan, twin_cages=twin_cages)
    return csv_text((("item", "type", "number"), *items))


def _cables(plan: WiringPlan) -> Iterator[tuple[str, str, int]]:
    lengths = Counter((cable.kind, cable.length_m) for cable in plan.cables)
    for (kind, length), count in sorted(lengths.items(), key=lambda item: (item[0][0], item[0][1] or 0)):
        yield "cable", f"{kind} {length:g} m" if length is not None else "length unknown", count


def _transceivers(optical: Iterable[PortName], plan: WiringPlan, *, twin_cages: bool) -> Iterator[tuple[str, str, int]]:
    ends = list(optical)
    hosts = sum(end.device in plan.hosts for end in ends)
    switch = [end for end in ends if end.device not in plan.hosts]
    if twin_cages and switch:
        yield "transceiver", "switch, two ports", len({(end.device, (end.number + 1) // 2) for end in switch})
    elif switch:
        yield "transceiver", "switch, one port", len(switch)
    if hosts:
        yield "transceiver", "host, one port", hosts
