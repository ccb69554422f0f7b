"""Wiring plans in spreadsheets: our own `wiring.csv` and `ethernet.csv`, and foreign sheets → PlanDraft.

Columns: source_device, source_port, destination_device, destination_port, and optionally

source_rack, source_unit, destination_rack, destination_unit
                    the places of both devices
rack, unit          the place of the cable's host; of the destination where no end is a host
cage                the label at the switch's port; at the source's port where both ends are switches
rail                the name of the rail that a host's cable belongs to; without it the adapter's name is the rail
cable_serial, length_m, cable_type
rate                the required rate of the link: `400`, `400G`, `NDR`, `4xNDR`
source_mac, destination_mac
                    hardware addresses of Ethernet ports (also a BMC's), by which neighbours are known

A header with our four columns is taken literally: an unknown column is an error. Any other header is read by the usual
names of these columns; the draft notes columns without a meaning.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice

from clusterctl.fleet.csv_text import csv_text
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import Placement, PlanDraft, PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Location, Mac
from clusterctl.fleet.plain_numbers import is_number
from clusterctl.formats.wiring.cages import CagedCable, in_cages, next_to_port
from clusterctl.formats.wiring.columns import A, B, Columns, find_columns, nearest
from clusterctl.formats.wiring.grid import DATE, Grid, text_grid
from clusterctl.formats.wiring.ports import board_of, gbps_of, is_switch_port, port_name

REQUIRED = ("source_device", "source_port", "destination_device", "destination_port")
OPTIONAL = (
    *("source_rack", "source_unit", "destination_rack", "destination_unit", "rack", "unit"),
    *("cage", "rail", "cable_serial", "length_m", "cable_type", "rate", "source_mac", "destination_mac"),
)
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}$")
_SWITCH = re.compile(r"(?:MF[0-9]+;)([^:;]+):([^/]+)(?:/U1|/([LS][0-9]{1,2}/U[0-9]))?$", re.IGNORECASE)
_BOARD = re.compile(r"(.+)/([LS][0-9]{1,2}/U[0-9])$", re.IGNORECASE)
_ADAPTER = re.compile(r"(\S+)\s+((?:mlx|hca|ib|nic|cx|roce)\S*[0-9])$", re.IGNORECASE)
_LENGTH = re.compile(r"([0-9]{1,4}(?:[.,][0-9]{1,3})?)\s*(m|meters?|metres?|cm|ft|feet)?$", re.IGNORECASE)
_METRES = {"c": 0.01, "f": 0.3048}
_DISTINCT = 1 << 16
"""Cells that a cache holds: a plan repeats the names of its devices and ports in most lines."""
_DATE = re.compile(
    r"\d{1,2}[-. ]+(?:jan|feb|m[aä]r|apr|ma[yi]|jun|jul|aug|sep|o[ck]t|nov|de[cz])[a-z]*\.?$", re.IGNORECASE
)
_FEW = 4


@dataclass(slots=True)
class _Reader:
    file: str
    columns: Columns
    literal: bool
    ethernet: bool = False
    cables: list[PlannedCable] = field(default_factory=list)
    caged: list[CagedCable] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    macs: dict[PortName, Mac] = field(default_factory=dict)
    seen: set[frozenset[PortName]] = field(default_factory=set)
    placed: set[tuple[str, str, str]] = field(default_factory=set)

    def error(self, line: int, column: str, message: str, remedy: str) -> UsageError:
        heading = self.columns.heading.get(column, column)
        return UsageError(message, where=f"{self.file}:{line} {heading}".rstrip(), remedy=remedy)


def read_wiring_csv(text: str, file: str) -> PlanDraft:
    """Return an InfiniBand plan: a host's port is the name of its HCA (`mlx5_0`), a switch's port its number.

    Raises UsageError that names file, line and column.
    """
    return read_wiring_grid(text_grid(text, file))


def read_wiring_grid(grid: Grid) -> PlanDraft:
    """Return the InfiniBand plan of a sheet. Raises UsageError that names file, line and column."""
    reader = _read(grid, ethernet=False)
    _check_kinds(reader)
    hosts = (end.device for cable in reader.cables for end in (cable.source, cable.destination) if not end.on_switch)
    return _draft(reader, frozenset(hosts), grid)


def fits(grid: Grid) -> bool:
    """Return whether a sheet has the columns of a wiring plan, and a row below them."""
    columns = find_columns(grid.head)
    return columns is not None and len(grid.head) > columns.first


def read_ethernet_csv(text: str, file: str) -> PlanDraft:
    """Return an Ethernet plan: each cable's source is a switch, and what is never a source is a host.

    Ports are called as LLDP does (`Ethernet12`, `ens1f0`), a BMC's port `bmc`. Raises UsageError that names file, line
    and column.
    """
    grid = text_grid(text, file)
    reader = _read(grid, ethernet=True)
    switches = {cable.source.device for cable in reader.cables}
    return _draft(reader, frozenset(cable.destination.device for cable in reader.cables) - switches, grid)


def _read(grid: Grid, *, ethernet: bool) -> _Reader:
    reader = _reader(grid, ethernet=ethernet)
    for line, cells in _rows(reader, grid):
        if reader.literal or _is_cable(cells):
            _row(reader, cells, line)
    if reader.caged:
        _count_over_switches(reader)
    if not reader.cables:
        raise UsageError("no cable in it", where=grid.label, remedy="list at least one cable")
    return reader


def _rows(reader: _Reader, grid: Grid) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the cells of each row by their role. Only a foreign sheet may have rows shorter than its header."""
    roles, places = tuple(reader.columns.place), tuple(reader.columns.place.values())
    width = len(grid.head[reader.columns.first - 1][1])
    for line, row in islice(chain(grid.head, grid.rest), reader.columns.first, None):
        cells = row
        if len(cells) != width:
            if reader.literal:
                message = f"{len(cells)} cells, but the header has {width} columns"
                raise reader.error(line, "", message, "fill in or cut the row")
            cells += ("",) * (width - len(cells))
        yield line, dict(zip(roles, [cells[place] for place in places], strict=True))


def _reader(grid: Grid, *, ethernet: bool) -> _Reader:
    if not grid.head:
        raise UsageError("is empty", where=f"{grid.label}:1", remedy="name the columns in its first line")
    first = grid.head[0][1]
    if set(REQUIRED) <= set(first):
        place = {name: number for number, name in enumerate(first)}
        reader = _Reader(grid.label, Columns(place, {}, frozenset(), (), 1), literal=True, ethernet=ethernet)
        for name in first:
            if name not in (*REQUIRED, *OPTIONAL) or first.count(name) > 1:
                allowed = f"allowed, each once: {', '.join((*REQUIRED, *OPTIONAL))}"
                raise reader.error(1, name, "unknown or repeated column", allowed)
        return reader
    columns = find_columns(grid.head)
    if columns is None:
        best, missing = nearest(grid.head)
        found = ", ".join(filter(None, best)) or "nothing"
        where = f"{grid.label}:{grid.head[0][0]} {missing[0]}"
        raise UsageError(f"column missing; found: {found}", where=where, remedy=f"add {missing[0]}")
    return _Reader(grid.label, columns, literal=False, ethernet=ethernet)


def _is_cable(row: Mapping[str, str]) -> bool:
    """Return whether a row of a foreign sheet lists a cable: no repeated heading, title, or port without a cable."""
    cells = [row[name] for name in REQUIRED]
    far = row["destination_device"] or row["destination_port"]
    return bool(far) and len(set(cells)) > 1 and find_columns([(1, tuple(cells))]) is None


def _draft(reader: _Reader, hosts: frozenset[str], grid: Grid) -> PlanDraft:
    ignored = [f"{reader.file}: columns without a meaning: {', '.join(reader.columns.ignored)}"]
    headings = reader.columns.heading
    return PlanDraft(
        file=reader.file,
        cables=tuple(reader.cables),
        hosts=hosts,
        placements=tuple(reader.placements),
        models=reader.models,
        macs=reader.macs,
        columns=(headings.get("source_port", "source_port"), headings.get("destination_port", "destination_port")),
        notes=(*grid.notes, *(ignored if reader.columns.ignored else ())),
    )


def _row(reader: _Reader, cells: Mapping[str, str], line: int) -> None:
    _check_cells(reader, cells, line)
    source, destination = _end(reader, cells, A), _end(reader, cells, B)
    cable = PlannedCable(
        source=source,
        destination=destination,
        cage=cells.get("cage", ""),
        serial=cells.get("cable_serial", ""),
        length_m=_length(reader, line, cells.get("length_m", "")),
        line=line,
        rail=cells.get("rail", ""),
        gbps=_rate(reader, line, cells.get("rate", "")),
        kind=cells.get("cable_type", ""),
    )
    if (cages := _cages(reader, cells, cable)) is not None:
        reader.caged.append(cages)
    elif reader.literal or cable.ends not in reader.seen:
        reader.seen.add(cable.ends)
        reader.cables.append(cable)
    else:
        return  # listed again from its other end
    host = source if not source.on_switch and destination.on_switch else destination
    for end, prefix in ((host, ""), (source, "source_"), (destination, "destination_")):
        _place(reader, end, cells, prefix, line)
    for end, column in ((source, "source_mac"), (destination, "destination_mac")):
        if cells.get(column):
            _mac(reader, end, cells[column], column, line)


def _cages(reader: _Reader, cells: Mapping[str, str], cable: PlannedCable) -> CagedCable | None:
    """Return the cable with its cells of cages; None in our own sheets, and where a sheet has no such column."""
    place = reader.columns.place
    if reader.literal or reader.ethernet or not any(role in place for role in ("cage", f"{A}_cage", f"{B}_cage")):
        return None
    labelled = A if cable.labelled == cable.source else B
    alone = cells["cage"] if next_to_port(place, labelled, "cage") else ""
    found = {end: cells.get(f"{end}_cage", "") or (alone if end == labelled else "") for end in (A, B)}
    return CagedCable(cable, found[A], found[B])


def _count_over_switches(reader: _Reader) -> None:
    """Add the cables with the ports that their cages make of them; one that is listed from both ends counts once."""
    for cable in in_cages(reader.caged):
        if cable.ends not in reader.seen:
            reader.seen.add(cable.ends)
            reader.cables.append(cable)


def _check_cells(reader: _Reader, cells: Mapping[str, str], line: int) -> None:
    """Refuse a row that lacks a device or port, or in which the spreadsheet made a date of a port."""
    for name in REQUIRED:
        if not cells[name]:
            raise reader.error(line, name, "empty", "name the device or port; give a formula its value, and save again")
        if cells[name] == DATE or (name.endswith("port") and _is_date(cells[name])):
            remedy = "format the column as text and write the port again, or write 10 for 5/2"
            raise reader.error(line, name, "is a date: the spreadsheet made one of a port such as 5/2", remedy)
        if name in reader.columns.cage_ports and is_number(cells[name]):
            remedy = f"write {cells[name]}/1 or {cells[name]}/2, add a column Port, or call a column of ports Port"
            raise reader.error(line, name, f"is cage {cells[name]}, which has two ports", remedy)


@lru_cache(_DISTINCT)
def _is_date(cell: str) -> bool:
    return _DATE.match(cell) is not None


@dataclass(frozen=True, slots=True)
class _DeviceCell:
    """The cell of a device: its name, and its board and model, or the adapter of its host, where it names them."""

    name: str
    board: str = ""
    model: str = ""
    host: str = ""
    adapter: str = ""


@lru_cache(_DISTINCT)
def _device(cell: str) -> _DeviceCell:
    """Return the parts of `MF0;core-1:MCS8500/L16/U2`, `core-1/L16/U2`, `node007 mlx5_0` or `node007`."""
    if match := _SWITCH.match(cell):
        return _DeviceCell(match[1], board=match[3] or "", model=match[2])
    if match := _BOARD.match(cell):
        return _DeviceCell(match[1], board=match[2])
    if match := _ADAPTER.match(cell):
        return _DeviceCell(cell, host=match[1], adapter=match[2])
    return _DeviceCell(cell)


def _end(reader: _Reader, cells: Mapping[str, str], end: str) -> PortName:
    """Return one end. A device may be written as its node description, with its board, or with its adapter."""
    cell, port = cells[f"{end}_device"], cells[f"{end}_port"]
    if reader.ethernet:
        return PortName(cell, port)
    device = _device(cell)
    if device.model:
        reader.models[device.name] = device.model
    name = port_name(port)
    if device.adapter and is_switch_port(port):
        return PortName(device.host, device.adapter if name == "1" else f"{device.adapter}/{name}")
    if device.board and is_number(name):
        return PortName(device.name, board_of(f"{device.board}/P{name}"))
    if _is_host(reader, cells, end) and is_number(name):
        return PortName(device.name, f"mlx5_{int(name) - 1}")  # NVIDIA's cable validation tool: port 1 is mlx5_0
    return PortName(device.name, name)


def _is_host(reader: _Reader, cells: Mapping[str, str], end: str) -> bool:
    """Return whether an end is a host by the sheet's column of types, else by its headings."""
    kind = cells.get(f"{end}_type", "").casefold()
    if kind:
        return any(word in kind for word in ("host", "server", "compute", "hca", "gpu"))
    return end in reader.columns.host_ends


def _check_kinds(reader: _Reader) -> None:
    """Refuse a port that cannot be a switch's on a device with other ports that are a switch's."""
    named: dict[str, list[tuple[PortName, PlannedCable]]] = defaultdict(list)
    numbered: dict[str, int] = defaultdict(int)
    for cable in reader.cables:
        for end in (cable.source, cable.destination):
            if end.on_switch:
                numbered[end.device] += 1
            else:
                named[end.device].append((end, cable))
    for device, ends in named.items():
        if numbered[device] >= max(_FEW, 2 * len(ends)):
            end, cable = ends[0]
            column = "source_port" if end == cable.source else "destination_port"
            remedy = "write the port as its number, or as 5/2 for cage 5 port 2"
            raise reader.error(cable.line, column, f"{end.port!r} is no port of the switch {device}", remedy)


def _place(reader: _Reader, end: PortName, cells: Mapping[str, str], prefix: str, line: int) -> None:
    """Record where a device stands, with the first line for each place."""
    rack, unit = cells.get(f"{prefix}rack"), cells.get(f"{prefix}unit", "")
    if rack and (end.device, rack, unit) not in reader.placed:
        reader.placed.add((end.device, rack, unit))
        location = Location(rack, _unit(reader, line, f"{prefix}unit", unit))
        reader.placements.append(Placement(end.device, location, line))


def _mac(reader: _Reader, end: PortName, cell: str, column: str, line: int) -> None:
    mac = Mac(cell.lower().replace("-", ":"))
    if not _MAC.match(mac):
        raise reader.error(line, column, f"{cell!r} is no MAC address", "write it as 0c:42:a1:00:00:01")
    reader.macs[end] = mac


def _length(reader: _Reader, line: int, cell: str) -> float | None:
    if not cell:
        return None
    match = _LENGTH.match(cell)
    metres = float(match[1].replace(",", ".")) * _METRES.get((match[2] or "m")[0].lower(), 1) if match else 0.0
    if not 0 < metres < 1000:
        if not reader.literal:
            return None
        raise reader.error(line, "length_m", f"{cell!r} is no cable length", "give metres, such as 1.5")
    return round(metres, 3)


def _rate(reader: _Reader, line: int, cell: str) -> float | None:
    found = gbps_of("".join(cell.split())) if cell else None
    if cell and found is None and reader.literal:
        raise reader.error(line, "rate", f"{cell!r} is no link rate", "write 400, 400G or NDR")
    return found


def _unit(reader: _Reader, line: int, column: str, cell: str) -> int | None:
    digits = cell.upper().removeprefix("U").strip()
    if not digits:
        return None
    if not (digits.isascii() and digits.isdigit() and len(digits) < 4):
        if not reader.literal:
            return None
        raise reader.error(line, column, f"{cell!r} is no rack unit", "give the lowest unit's number, such as 12")
    return int(digits)


_COLUMNS = (
    *REQUIRED,
    *(
        "source_rack",
        "source_unit",
        "destination_rack",
        "destination_unit",
        "cage",
        "rail",
        "cable_serial",
        "length_m",
        "cable_type",
        "rate",
    ),
)


def wiring_csv(plan: WiringPlan) -> str:
    """Return the plan as a wiring.csv: one line for each cable, in the plan's order."""
    return csv_text((_COLUMNS, *(_written(cable, plan) for cable in plan.cables)))


def ethernet_csv(plan: WiringPlan) -> str:
    """Return the plan as an ethernet.csv: each cable's source is a switch, and the known MACs of its ends follow."""
    rows = ((*_written(cable, plan), *_mac_cells(cable, plan)) for cable in plan.cables)
    return csv_text(((*_COLUMNS, "source_mac", "destination_mac"), *rows))


def _mac_cells(cable: PlannedCable, plan: WiringPlan) -> tuple[str, str]:
    return plan.macs.get(cable.source, ""), plan.macs.get(cable.destination, "")


def _written(cable: PlannedCable, plan: WiringPlan) -> tuple[object, ...]:
    source, destination = cable.source, cable.destination
    return (
        *(source.device, source.port, destination.device, destination.port),
        *_cells(plan.locations.get(source.device)),
        *_cells(plan.locations.get(destination.device)),
        *(cable.cage, cable.rail, cable.serial),
        *(_figure(cable.length_m), cable.kind, _figure(cable.gbps)),
    )


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:g}"


def _cells(location: Location | None) -> tuple[str, str]:
    if location is None or not location.rack:
        return ("", "")
    return (location.rack, "" if location.unit is None else str(location.unit))
