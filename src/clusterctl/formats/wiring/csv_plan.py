"""`wiring.csv` and `ethernet.csv`, as a spreadsheet exports them → PlanDraft.

Columns: source_device, source_port, destination_device, destination_port, and optionally

source_rack, source_unit, destination_rack, destination_unit
                    where the devices stand
rack, unit          where the cable's host stands; the destination where no end is a host
cage                the label beside the switch's port; the source's where both are switches
rail                the name of the rail that a host's cable belongs to; without it the adapter's name tells the rail
cable_serial, length_m
source_mac, destination_mac
                    hardware addresses of Ethernet ports (also a BMC's), by which neighbours are known
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import Placement, PlanDraft, PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Location, Mac
from clusterctl.formats.site.table import read_table

REQUIRED = ("source_device", "source_port", "destination_device", "destination_port")
OPTIONAL = (
    *("source_rack", "source_unit", "destination_rack", "destination_unit", "rack", "unit"),
    *("cage", "rail", "cable_serial", "length_m", "source_mac", "destination_mac"),
)
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}$")


@dataclass(slots=True)
class _Reader:
    file: str
    cables: list[PlannedCable] = field(default_factory=list)
    placements: list[Placement] = field(default_factory=list)
    macs: dict[PortName, Mac] = field(default_factory=dict)

    def error(self, line: int, column: str, message: str, remedy: str) -> UsageError:
        return UsageError(message, where=f"{self.file}:{line} {column}".rstrip(), remedy=remedy)


def read_wiring_csv(text: str, file: str) -> PlanDraft:
    """An InfiniBand plan: a host's port is the name of its HCA (`mlx5_0`), a switch's port its number.

    Raises UsageError that names file, line and column.
    """
    reader = _read(text, file)
    hosts = (end.device for cable in reader.cables for end in (cable.source, cable.destination) if _is_name(end))
    return _draft(reader, frozenset(hosts))


def read_ethernet_csv(text: str, file: str) -> PlanDraft:
    """An Ethernet plan: each cable's source is a switch, and what is never a source is a host.

    Ports are called as LLDP does (`Ethernet12`, `ens1f0`), a BMC's port `bmc`. Raises UsageError that names file, line
    and column.
    """
    reader = _read(text, file)
    switches = {cable.source.device for cable in reader.cables}
    return _draft(reader, frozenset(cable.destination.device for cable in reader.cables) - switches)


def _read(text: str, file: str) -> _Reader:
    reader = _Reader(file)
    table = read_table(text, file)
    _check_header(reader, table.headings)
    for line, cells in table.rows:
        if len(cells) != len(table.headings):
            message = f"{len(cells)} cells, but the header has {len(table.headings)} columns"
            raise reader.error(line, "", message, "fill in or cut the row")
        _row(reader, {name: cell.strip() for name, cell in zip(table.headings, cells, strict=True)}, line)
    if not reader.cables:
        raise UsageError("no cable in it", where=file, remedy="list at least one cable")
    return reader


def _draft(reader: _Reader, hosts: frozenset[str]) -> PlanDraft:
    return PlanDraft(
        file=reader.file,
        cables=tuple(reader.cables),
        hosts=hosts,
        placements=tuple(reader.placements),
        macs=reader.macs,
        columns=("source_port", "destination_port"),
    )


def _check_header(reader: _Reader, names: tuple[str, ...]) -> None:
    allowed = ", ".join((*REQUIRED, *OPTIONAL))
    for name in REQUIRED:
        if name not in names:
            raise reader.error(1, name, f"column missing; found: {', '.join(names) or 'nothing'}", f"add {name}")
    for name in names:
        if name not in (*REQUIRED, *OPTIONAL) or names.count(name) > 1:
            raise reader.error(1, name, "unknown or repeated column", f"allowed, each once: {allowed}")


def _row(reader: _Reader, cells: Mapping[str, str], line: int) -> None:
    for name in REQUIRED:
        if not cells[name]:
            raise reader.error(line, name, "empty", "name the device or port")
    cable = PlannedCable(
        source=PortName(cells["source_device"], _port(cells["source_port"])),
        destination=PortName(cells["destination_device"], _port(cells["destination_port"])),
        cage=cells.get("cage", ""),
        serial=cells.get("cable_serial", ""),
        length_m=_length(reader, line, cells.get("length_m", "")),
        line=line,
        rail=cells.get("rail", ""),
    )
    reader.cables.append(cable)
    host = cable.source if _is_name(cable.source) and not _is_name(cable.destination) else cable.destination
    for end, prefix in ((host, ""), (cable.source, "source_"), (cable.destination, "destination_")):
        _place(reader, end, cells, prefix, line)
    for end, column in ((cable.source, "source_mac"), (cable.destination, "destination_mac")):
        if cells.get(column):
            _mac(reader, end, cells[column], column, line)


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


def _is_name(end: PortName) -> bool:
    return not end.port.isdigit()


def _port(cell: str) -> str:
    return str(int(cell)) if cell.isascii() and cell.isdigit() and len(cell) < 10 else cell


def _length(reader: _Reader, line: int, cell: str) -> float | None:
    if not cell:
        return None
    try:
        metres = float(cell)
    except ValueError:
        metres = 0.0
    if not 0 < metres < 1000:
        raise reader.error(line, "length_m", f"{cell!r} is no cable length", "give metres, such as 1.5")
    return metres


def _unit(reader: _Reader, line: int, column: str, cell: str) -> int | None:
    digits = cell.upper().removeprefix("U")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdigit() and len(digits) < 4):
        raise reader.error(line, column, f"{cell!r} is no rack unit", "give the lowest unit's number, such as 12")
    return int(digits)


_COLUMNS = (
    *REQUIRED,
    *("source_rack", "source_unit", "destination_rack", "destination_unit", "cage", "rail", "cable_serial", "length_m"),
)


def wiring_csv(plan: WiringPlan) -> str:
    """One line for each cable, in the plan's order."""
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
                "" if cable.length_m is None else f"{cable.length_m:g}",
            )
        )
    return text.getvalue()


def _cells(location: Location | None) -> tuple[str, str]:
    if location is None or not location.rack:
        return ("", "")
    return (location.rack, "" if location.unit is None else str(location.unit))
