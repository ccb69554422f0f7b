"""Wiring plans in spreadsheets: our own `wiring.csv` and `ethernet.csv`, and sheets of other people → PlanDraft.

Columns: source_device, source_port, destination_device, destination_port, and optionally

source_rack, source_unit, destination_rack, destination_unit
                    where the devices stand
rack, unit          where the cable's host stands; the destination where no end is a host
cage                the label beside the switch's port; the source's where both are switches
rail                the name of the rail that a host's cable belongs to; without it the adapter's name tells the rail
cable_serial, length_m, cable_type
rate                what the link must run at: `400`, `400G`, `NDR`, `4xNDR`
source_mac, destination_mac
                    hardware addresses of Ethernet ports (also a BMC's), by which neighbours are known

A header with our four columns is taken literally: an unknown column is an error. Any other header is read by what
people call these columns; columns without a meaning are noted.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import Placement, PlanDraft, PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Location, Mac
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
    placements: list[Placement] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    macs: dict[PortName, Mac] = field(default_factory=dict)
    seen: set[frozenset[PortName]] = field(default_factory=set)

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
    columns = find_columns(grid.rows)
    return columns is not None and len(grid.rows) > columns.first


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
    width = len(grid.rows[reader.columns.first - 1][1])
    for line, cells in grid.rows[reader.columns.first :]:
        if reader.literal and len(cells) != width:
            message = f"{len(cells)} cells, but the header has {width} columns"
            raise reader.error(line, "", message, "fill in or cut the row")
        place = reader.columns.place
        row = {role: cells[number] if number < len(cells) else "" for role, number in place.items()}
        if reader.literal or _is_cable(row):
            _row(reader, row, line)
    if not reader.cables:
        raise UsageError("no cable in it", where=grid.label, remedy="list at least one cable")
    return reader


def _reader(grid: Grid, *, ethernet: bool) -> _Reader:
    if not grid.rows:
        raise UsageError("is empty", where=f"{grid.label}:1", remedy="name the columns in its first line")
    first = grid.rows[0][1]
    if set(REQUIRED) <= set(first):
        place = {name: number for number, name in enumerate(first)}
        reader = _Reader(grid.label, Columns(place, {}, frozenset(), (), 1), literal=True, ethernet=ethernet)
        for name in first:
            if name not in (*REQUIRED, *OPTIONAL) or first.count(name) > 1:
                allowed = f"allowed, each once: {', '.join((*REQUIRED, *OPTIONAL))}"
                raise reader.error(1, name, "unknown or repeated column", allowed)
        return reader
    columns = find_columns(grid.rows)
    if columns is None:
        best, missing = nearest(grid.rows)
        found = ", ".join(filter(None, best)) or "nothing"
        where = f"{grid.label}:{grid.rows[0][0]} {missing[0]}"
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
    for name in REQUIRED:
        if not cells[name]:
            raise reader.error(line, name, "empty", "name the device or port; give a formula its value, and save again")
        if cells[name] == DATE or (name.endswith("port") and _DATE.match(cells[name])):
            remedy = "format the column as text and write the port again, or write 10 for 5/2"
            raise reader.error(line, name, "is a date: the spreadsheet made one of a port such as 5/2", remedy)
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
    if not reader.literal and cable.ends in reader.seen:
        return  # listed again from its other end
    reader.seen.add(cable.ends)
    reader.cables.append(cable)
    host = source if not source.on_switch and destination.on_switch else destination
    for end, prefix in ((host, ""), (source, "source_"), (destination, "destination_")):
        _place(reader, end, cells, prefix, line)
    for end, column in ((source, "source_mac"), (destination, "destination_mac")):
        if cells.get(column):
            _mac(reader, end, cells[column], column, line)


def _end(reader: _Reader, cells: Mapping[str, str], end: str) -> PortName:
    """Return one end. A device may be written as its node description, with its board, or with its adapter."""
    device, port = cells[f"{end}_device"], cells[f"{end}_port"]
    if reader.ethernet:
        return PortName(device, port)
    board = ""
    if match := _SWITCH.match(device):
        device, board = match[1], match[3] or ""
        reader.models[device] = match[2]
    elif match := _BOARD.match(device):
        device, board = match[1], match[2]
    elif (match := _ADAPTER.match(device)) and is_switch_port(port):
        number = port_name(port)
        return PortName(match[1], match[2] if number == "1" else f"{match[2]}/{number}")
    name = port_name(port)
    if board and name.isdigit():
        return PortName(device, board_of(f"{board}/P{name}"))
    if _is_host(reader, cells, end) and name.isdigit():
        return PortName(device, f"mlx5_{int(name) - 1}")  # NVIDIA's cable validation tool: port 1 is mlx5_0
    return PortName(device, name)


def _is_host(reader: _Reader, cells: Mapping[str, str], end: str) -> bool:
    """Return whether the sheet says that an end is a host: by its column of types, else by its headings."""
    kind = cells.get(f"{end}_type", "").casefold()
    if kind:
        return any(word in kind for word in ("host", "server", "compute", "hca", "gpu"))
    return end in reader.columns.host_ends


def _check_kinds(reader: _Reader) -> None:
    """Refuse a port that cannot be a switch's on a device whose other ports are a switch's."""
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
    rack = cells.get(f"{prefix}rack")
    if rack:
        unit = _unit(reader, line, f"{prefix}unit", cells.get(f"{prefix}unit", ""))
        reader.placements.append(Placement(end.device, Location(rack, unit), line))


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
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for cable in plan.cables:
        source, destination = cable.source, cable.destination
        writer.writerow(
            (
                *(source.device, source.port, destination.device, destination.port),
                *_cells(plan.locations.get(source.device)),
                *_cells(plan.locations.get(destination.device)),
                *(cable.cage, cable.rail, cable.serial),
                *(_figure(cable.length_m), cable.kind, _figure(cable.gbps)),
            )
        )
    return text.getvalue()


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:g}"


def _cells(location: Location | None) -> tuple[str, str]:
    if location is None or not location.rack:
        return ("", "")
    return (location.rack, "" if location.unit is None else str(location.unit))
