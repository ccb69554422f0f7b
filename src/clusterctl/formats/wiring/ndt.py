"""The topology file that UFM's NDT plug-in compares with (`.ndt`, CSV) → PlanDraft.

Columns are looked up by name: StartDevice (also `#StartDevice`, `#Fields:StartDevice`), StartPort, EndDevice, EndPort;
optionally `rack #` and `U height` (where the start device stands), `Cable Length` (metres) and State. Ports are written
`Port 26`, on a modular switch `Blade 2_Port 1/1`; devices by node description, a host's with its adapter
(`node001 mlx5_0`). Rows of unconnected ports, and a cable's second mention from its other end, are no cables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import Placement, PlanDraft, PlannedCable, PortName
from clusterctl.fleet.node import Location
from clusterctl.formats.site.table import read_table
from clusterctl.formats.wiring.ports import gbps_of, port_name

_NEEDED = ("StartDevice", "StartPort", "EndDevice", "EndPort")
_UNCONNECTED = frozenset({"disabled", "down", "no-discover"})
_PREFIX = re.compile(r"^#\s*(?:Fields:)?\s*")
_SWITCH = re.compile(r"(?:MF[0-9]+;)([^:;]+):([^/]+)(?:/U1)?$")
_ADAPTER = re.compile(r"(\S+)\s+(\S*[0-9])$")
_ADAPTER_PORT = re.compile(r"\S+ ((?:ib|mlx|hca)\S+)$", re.IGNORECASE)
"""How some sites write a host's port: a label of their own, then the name that Linux gives to the interface."""
_LENGTH = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?)\s*m?$", re.IGNORECASE)


def is_ndt(header: str) -> bool:
    """Return whether a file's first line is that of an NDT file."""
    return "StartDevice" in header and "EndDevice" in header


@dataclass(slots=True)
class _Reader:
    file: str
    cables: list[PlannedCable] = field(default_factory=list)
    seen: set[frozenset[PortName]] = field(default_factory=set)
    placements: list[Placement] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    hosts: set[str] = field(default_factory=set)

    def error(self, line: int, column: str, message: str, remedy: str) -> UsageError:
        return UsageError(message, where=f"{self.file}:{line} {column}".rstrip(), remedy=remedy)


def read_ndt(text: str, file: str) -> PlanDraft:
    """Return the draft. Raise UsageError with file, line and column."""
    reader = _Reader(file)
    table = read_table(text, file)
    names = [_PREFIX.sub("", name) for name in table.headings]
    for name in _NEEDED:
        if names.count(name) != 1:
            message = f"column {'missing' if name not in names else 'repeated'}; found: {', '.join(names)}"
            raise reader.error(1, name, message, f"name one column {name}")
    for line, cells in table.rows:
        if len(cells) != len(names):
            message = f"{len(cells)} cells, but the header has {len(names)} columns"
            raise reader.error(line, "", message, "fill in or cut the row")
        _row(reader, {name: cell.strip() for name, cell in zip(names, cells, strict=True)}, line)
    if not reader.cables:
        raise UsageError("no cable in it", where=file, remedy="list at least one cable")
    return PlanDraft(
        file=file,
        cables=tuple(reader.cables),
        hosts=frozenset(reader.hosts),
        placements=tuple(reader.placements),
        models=reader.models,
        columns=("StartPort", "EndPort"),
    )


def _row(reader: _Reader, cells: Mapping[str, str], line: int) -> None:
    if not cells["EndDevice"] and not cells["EndPort"] and cells.get("State", "").lower() in _UNCONNECTED:
        return
    for name in _NEEDED:
        if not cells[name]:
            raise reader.error(line, name, "empty", "name the device or port; an unconnected port has State Disabled")
    cable = PlannedCable(
        source=_end(reader, cells["StartDevice"], cells["StartPort"]),
        destination=_end(reader, cells["EndDevice"], cells["EndPort"]),
        length_m=_length(reader, cells.get("Cable Length", ""), line),
        gbps=gbps_of(cells.get("Speed", "")),
        line=line,
    )
    if cable.ends in reader.seen:
        return
    reader.seen.add(cable.ends)
    reader.cables.append(cable)
    if cells.get("rack #"):
        location = Location(cells["rack #"], _unit(reader, cells.get("U height", ""), line))
        reader.placements.append(Placement(cable.source.device, location, line))


def _end(reader: _Reader, device: str, port: str) -> PortName:
    labelled = _ADAPTER_PORT.match(port)
    label = labelled[1] if labelled else port_name(port)
    if switch := _SWITCH.match(device):
        reader.models[switch[1]] = switch[2]
        return PortName(switch[1], label)
    if adapter := _ADAPTER.match(device):
        reader.hosts.add(adapter[1])
        return PortName(adapter[1], adapter[2] if label == "1" else f"{adapter[2]}/{label}")
    end = PortName(device, label)
    if not end.on_switch:
        reader.hosts.add(device)
    return end


def _length(reader: _Reader, cell: str, line: int) -> float | None:
    if not cell:
        return None
    match = _LENGTH.match(cell)
    metres = float(match[1]) if match else 0.0
    if not 0 < metres < 1000:
        raise reader.error(line, "Cable Length", f"{cell!r} is no cable length", "give metres, such as 1.5")
    return metres


def _unit(reader: _Reader, cell: str, line: int) -> int | None:
    digits = cell.upper().removeprefix("U").strip()
    if not digits:
        return None
    if not (digits.isascii() and digits.isdigit() and len(digits) < 4):
        raise reader.error(line, "U height", f"{cell!r} is no rack unit", "give the lowest unit's number, such as 12")
    return int(digits)
