"""Sheets with a column for the cage and one for the port in it: cage 5, port 2 is IB port 10 (ports.py has the rule).

A number of a cage stands next to the port's column. Where each port of a switch is 1 or 2 and a cage is above 1, the
ports count within their cages; a port above 2 shows that they count over the whole switch, and the cage is its label.
Other columns of that name, such as the cage of a data centre, have no meaning here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.fleet.fabric.wiring import PlannedCable, PortName
from clusterctl.formats.wiring.ports import port_name

_NUMBER = re.compile(r"(?:(?:cage|osfp|qsfp)[\s:_.#-]*)?0*([1-9]\d{0,2})(?:[.,]0+)?$", re.IGNORECASE)
_IN_CAGE = ("1", "2")


@dataclass(frozen=True, slots=True)
class CagedCable:
    """A cable as its row has it, and the cells of the cages at its source and its destination; empty: none."""

    cable: PlannedCable
    source: str = ""
    destination: str = ""


def next_to_port(place: Mapping[str, int], end: str, role: str) -> bool:
    """Return whether the column of a role stands next to that of an end's port."""
    return role in place and abs(place[role] - place[f"{end}_port"]) == 1


def in_cages(rows: Sequence[CagedCable]) -> list[PlannedCable]:
    """Return the cables with their switches' ports counted over the whole switch, and the cages as labels."""
    source = _counts_within([(row.cable.source, row.source) for row in rows])
    destination = _counts_within([(row.cable.destination, row.destination) for row in rows])
    return [_cable(row, source=source, destination=destination) for row in rows]


def _counts_within(ends: Sequence[tuple[PortName, str]]) -> bool:
    """Return whether the ports of the switches are counted within cages."""
    numbered = [(port, found[1]) for port, cell in ends if port.on_switch and (found := _NUMBER.match(cell))]
    within = all(port.port in _IN_CAGE for port, _ in numbered)
    return within and any(cage != "1" for _, cage in numbered)


def _cable(row: CagedCable, *, source: bool, destination: bool) -> PlannedCable:
    from_port, from_label = _port(row.cable.source, row.source, within=source)
    to_port, to_label = _port(row.cable.destination, row.destination, within=destination)
    label = from_label if row.cable.labelled == row.cable.source else to_label
    return replace(row.cable, source=from_port, destination=to_port, cage=label or row.cable.cage)


def _port(port: PortName, cell: str, *, within: bool) -> tuple[PortName, str]:
    """Return the port over the whole switch, and the label of its cage."""
    number = _NUMBER.match(cell)
    if not (within and port.on_switch and number):
        return port, cell
    label = f"{number[1]}/{port.port}"
    return PortName(port.device, port_name(label)), label
