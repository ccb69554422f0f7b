"""Wiring plans as people have them → WiringPlan: `wiring.csv` (a spreadsheet's export) and ibtopodiff's `.topo`.

CSV columns: source_device, source_port, destination_device, destination_port, and optionally rack and unit (where the
cable's host stands; the destination where no end is a host), cage (the label beside the switch's port; the source's
where both are switches), cable_serial, length_m. A host's port is the name of its HCA (`mlx5_0`), a switch's port its
number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Location
from clusterctl.fleet.wiring import PlannedCable, PortName, WiringPlan

_REQUIRED = ("source_device", "source_port", "destination_device", "destination_port")
_OPTIONAL = ("rack", "unit", "cage", "cable_serial", "length_m")
_TOPO_CABLE = re.compile(r"P(\d+)\s+-(?:\d+[xX]-?[\d.]*G?-)?>\s+(\S+)\s+(\S+)\s+P(\d+)$")
_TOPO_DEVICE = re.compile(r"(\S+)\s+(\S+)(?:\s+CFG:.*)?$")


@dataclass(slots=True)
class _Builder:
    """Cables so far, and which line took which port."""

    file: str
    cables: list[PlannedCable] = field(default_factory=list)
    taken: dict[PortName, PlannedCable] = field(default_factory=dict)
    locations: dict[str, Location] = field(default_factory=dict)

    def error(self, line: int, column: str, message: str, remedy: str) -> UsageError:
        where = f"{self.file}:{line} {column}" if column else f"{self.file}:{line}"
        return UsageError(message, where=where, remedy=remedy)

    def add(self, cable: PlannedCable, columns: tuple[str, str] = ("", "")) -> None:
        for end, column in zip((cable.source, cable.destination), columns, strict=True):
            other = self.taken.get(end)
            if other is not None:
                message = f"{end} is already planned on line {other.line}"
                raise self.error(cable.line, column, message, "give each port one cable, and list each cable once")
            self.taken[end] = cable
        self.cables.append(cable)

    def place(self, device: str, location: Location, line: int) -> None:
        known = self.locations.setdefault(device, location)
        if known != location:
            message = f"{device} stands in {location} here and in {known} above"
            raise self.error(line, "rack", message, "give each device one rack and unit")

    def plan(self, hosts: Iterable[str]) -> WiringPlan:
        if not self.cables:
            raise UsageError("no cable in it", where=self.file, remedy="list at least one cable")
        return WiringPlan(tuple(self.cables), frozenset(hosts), self.locations)


def decode_plan(data: bytes, *, file: str) -> WiringPlan:
    """The plan in a file's bytes: `.topo` where its name says so, else CSV. Raises UsageError with file and line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise UsageError(message, where=f"{file}:{line}", remedy="save the plan as UTF-8 text") from error
    if file.removesuffix(".gz").endswith(".topo"):
        return parse_topo(text, file=file)
    return parse_wiring_csv(text, file=file)


def parse_wiring_csv(text: str, *, file: str = "wiring.csv") -> WiringPlan:
    """Raises UsageError that names file, line and column."""
    builder = _Builder(file)
    reader = csv.DictReader(io.StringIO(text), strict=True)
    try:
        _check_header(builder, reader.fieldnames or ())
        for row in reader:
            _csv_row(builder, row, reader.line_num)
    except csv.Error as error:
        line = reader.reader.line_num
        raise builder.error(line, "", f"not CSV: {error}", "export the plan as plain CSV again") from error
    return builder.plan({end.device for end in builder.taken if not end.port.isdigit()})


def _check_header(builder: _Builder, columns: Iterable[str]) -> None:
    names = list(columns)
    allowed = ", ".join((*_REQUIRED, *_OPTIONAL))
    for name in _REQUIRED:
        if name not in names:
            raise builder.error(1, name, f"column missing; found: {', '.join(names) or 'nothing'}", f"add {name}")
    for name in names:
        if name not in (*_REQUIRED, *_OPTIONAL) or names.count(name) > 1:
            raise builder.error(1, name, "unknown or repeated column", f"allowed, each once: {allowed}")


def _csv_row(builder: _Builder, row: Mapping[str | None, str | list[str] | None], line: int) -> None:
    cells = {name: value.strip() for name, value in row.items() if name and isinstance(value, str)}
    if None in row or len(cells) != len(row):
        raise builder.error(line, "", "not as many cells as the header has columns", "fill in or cut the row")
    if not any(cells.values()):
        return
    for name in _REQUIRED:
        if not cells[name]:
            raise builder.error(line, name, "empty", "name the device or port")
    source = PortName(cells["source_device"], _port(cells["source_port"]))
    destination = PortName(cells["destination_device"], _port(cells["destination_port"]))
    cable = PlannedCable(
        source=source,
        destination=destination,
        cage=cells.get("cage", ""),
        serial=cells.get("cable_serial", ""),
        length_m=_length(builder, line, cells.get("length_m", "")),
        line=line,
    )
    builder.add(cable, ("source_port", "destination_port"))
    if cells.get("rack"):
        unit = _unit(builder, line, cells.get("unit", ""))
        host = source if not source.port.isdigit() and destination.port.isdigit() else destination
        builder.place(host.device, Location(cells["rack"], unit), line)


def _port(cell: str) -> str:
    return str(int(cell)) if cell.isascii() and cell.isdigit() else cell


def _length(builder: _Builder, line: int, cell: str) -> float | None:
    if not cell:
        return None
    try:
        metres = float(cell)
    except ValueError:
        metres = 0.0
    if not 0 < metres < 1000:
        raise builder.error(line, "length_m", f"{cell!r} is no cable length", "give metres, such as 1.5")
    return metres


def _unit(builder: _Builder, line: int, cell: str) -> int | None:
    digits = cell.upper().removeprefix("U")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdigit()):
        raise builder.error(line, "unit", f"{cell!r} is no rack unit", "give the lowest unit's number, such as 12")
    return int(digits)


def parse_topo(text: str, *, file: str = "plan.topo") -> WiringPlan:
    """The topology file of ibtopodiff: a device, its cables indented below; a cable may be listed from both ends.

    Raises UsageError that names file and line. Devices that never have a line of their own are taken for hosts.
    """
    builder = _Builder(file)
    device = ""
    devices: set[str] = set()
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].strip()
        if not line:
            continue
        if match := _TOPO_CABLE.match(line):
            if not device:
                raise builder.error(number, "", "a cable before any device", "begin with a device: `SW36 leaf-1`")
            _topo_cable(builder, PortName(device, str(int(match[1]))), match, number)
        elif match := _TOPO_DEVICE.match(line):
            device = match[2]
            devices.add(device)
        else:
            raise builder.error(number, "", f"not understood: {line[:60]!r}", "write `P1 -> HCA node001 P1`")
    return builder.plan({end.device for end in builder.taken} - devices)


def _topo_cable(builder: _Builder, source: PortName, match: re.Match[str], line: int) -> None:
    cable = PlannedCable(source, PortName(match[3], str(int(match[4]))), line=line)
    known = builder.taken.get(source)
    if known is not None and known.ends == cable.ends:
        return
    builder.add(cable)
