"""ibdiagnet2's `db_csv` → the fabric (NODES, PORTS, LINKS) and telemetry (PM_INFO, CABLE_INFO, TEMP_SENSING …).

A section is `START_X`, a heading, rows, `END_X`; columns are found by name. Rows hold secrets (M_Keys): no message
quotes a row.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.telemetry import HIGHEST, TRAFFIC, ErrorRates, PortCounters, Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import LANE_GBPS, Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid
from clusterctl.formats.identifiers import guid_of

_EDGE = re.compile(r"(START|END)_([A-Z0-9_]+)$")
_PLAIN = re.compile(r"[^a-z0-9]")
_GUID = re.compile(r"0x([0-9a-fA-F]{1,16})$")
_NUMBER = re.compile(r"[0-9]{1,20}$|0x[0-9a-fA-F]{1,16}$")
_ABSENT = frozenset({"", "NA", "N/A", "ERR", "-1"})
REMEDY = "run ibdiagnet again, and give its whole ibdiagnet2.db_csv"


@dataclass(frozen=True, slots=True)
class IbdiagnetRow:
    """Cells of a row by plain column name (`nodeguid`: lower case, letters and digits only)."""

    cells: Mapping[str, str]
    file: str
    section: str
    line: int

    def error(self, column: str, problem: str) -> ParseError:
        return ParseError(f"{self.section}: {column} {problem}", where=f"{self.file}:{self.line}", remedy=REMEDY)

    def text(self, *columns: str) -> str:
        """Return the first of the columns that has a value; empty where none has."""
        cells = (self.cells.get(column, "").strip().strip('"').strip() for column in columns)
        return next((cell for cell in cells if cell.upper() not in _ABSENT), "")

    def number(self, *columns: str) -> int:
        """Return a whole number, decimal or 0x…. Raises ParseError for anything else."""
        text = self.text(*columns)
        if not _NUMBER.match(text):
            raise self.error(columns[0], "is not a number")
        return int(text, 0) if text.startswith("0x") else int(text)

    def guid(self, *columns: str) -> Guid:
        """Return a GUID. Raises ParseError for anything else."""
        match = _GUID.match(self.text(*columns))
        if match is None:
            raise self.error(columns[0], "is not a GUID")
        return guid_of(match[1])


@dataclass(frozen=True, slots=True)
class IbdiagnetSection:
    """One table: plain column names, rows, and the line of its start."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[IbdiagnetRow, ...]
    line: int

    def has(self, *columns: str) -> bool:
        """Return whether it has all of these columns."""
        return all(column in self.columns for column in columns)


def is_db_csv(text: str) -> bool:
    """Return whether the text has sections of a db_csv."""
    return text.startswith("START_") or "\nSTART_" in text


def sections(text: str, file: str) -> dict[str, IbdiagnetSection]:
    """Return all sections by name. Raises ParseError for an unclosed section, or a row with other columns."""
    found: dict[str, IbdiagnetSection] = {}
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        edge = _EDGE.match(line.strip())
        if edge is None:
            continue
        if edge[1] == "END" or edge[2] in found:
            problem = "ends without a start" if edge[1] == "END" else "occurs twice"
            raise ParseError(f"{edge[2]}: {problem}", where=f"{file}:{number}", remedy=REMEDY)
        found[edge[2]] = _section(edge[2], number, lines, file)
    if not found:
        raise ParseError("no section in it: empty, or not a db_csv", where=file, remedy=REMEDY)
    return found


def without_keys(text: str) -> str:
    """Return the text with blanked columns of keys (M_Keys and others), so that it may be stored."""
    keys = _KeyColumns()
    return "\n".join(map(keys.blanked, text.splitlines())) + "\n"


@dataclass(slots=True)
class _KeyColumns:
    """The places of key columns in the current section; None until its header is read."""

    places: frozenset[int] | None = frozenset()

    def blanked(self, line: str) -> str:
        """Return the next line of a db_csv, with its keys blanked."""
        edge = _EDGE.match(line.strip())
        if edge is not None:
            self.places = None if edge[1] == "START" else frozenset()
        elif self.places is None and line.strip():
            columns = [_PLAIN.sub("", cell.lower()) for cell in _split(line)]
            self.places = frozenset(place for place, column in enumerate(columns) if column.endswith("key"))
        elif self.places:
            return _blanked(_split(line), self.places)
        return line


def _split(line: str) -> list[str]:
    """Return the cells of a line; a line that is no CSV is split at its commas: it may hold a key."""
    try:
        return line.split(",") if '"' not in line else next(csv.reader([line]), [])
    except csv.Error:
        return line.split(",")


def _blanked(cells: list[str], places: frozenset[int]) -> str:
    kept = io.StringIO()
    csv.writer(kept, lineterminator="").writerow("" if place in places else cell for place, cell in enumerate(cells))
    return kept.getvalue()


def _section(name: str, start: int, lines: Iterator[tuple[int, str]], file: str) -> IbdiagnetSection:
    columns: tuple[str, ...] = ()
    rows: list[IbdiagnetRow] = []
    for number, line in lines:
        edge = _EDGE.match(line.strip())
        if edge is not None and edge.groups() == ("END", name):
            return IbdiagnetSection(name, columns, tuple(rows), start)
        if edge is not None:
            break
        if not line.strip():
            continue
        cells = _cells(line, name, f"{file}:{number}")
        if not columns:
            columns = tuple(_PLAIN.sub("", cell.lower()) for cell in cells)
        elif len(cells) != len(columns):
            message = f"{name}: {len(cells)} cells under {len(columns)} columns"
            raise ParseError(message, where=f"{file}:{number}", remedy=REMEDY)
        else:
            rows.append(IbdiagnetRow(dict(zip(columns, cells, strict=True)), file, name, number))
    raise ParseError(f"{name}: it has no end: output cut off", where=f"{file}:{start}", remedy=REMEDY)


def _cells(line: str, name: str, where: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except (csv.Error, StopIteration) as error:
        raise ParseError(f"{name}: a row that is not CSV", where=where, remedy=REMEDY) from error


_KINDS = {1: DeviceKind.CA, 2: DeviceKind.SWITCH, 3: DeviceKind.ROUTER}
_WIDTHS = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
"""PortInfo's LinkWidthActive → lanes."""
_SPEEDS = {
    1: "SDR",
    2: "DDR",
    4: "QDR",
    1 << 8: "FDR",
    2 << 8: "EDR",
    4 << 8: "HDR",
    8 << 8: "NDR",
    1 << 16: "FDR10",
    1 << 24: "XDR",
}
"""ibdiagnet's LinkSpeedActv: one byte each for PortInfo's speeds, extended speeds, vendor speeds, extended speeds 2."""
_UP = frozenset({"2", "3", "4"})
"""PortState of a port with its link up: initialized, armed, active."""
_NODE, _PORT_NUMBER = ("nodeguid",), ("portnum", "portnumber")


def parse_db_csv(text: str, *, file: str = "ibdiagnet2.db_csv") -> tuple[Fabric, Telemetry]:
    """Return both; a missing telemetry section leaves its mapping empty. Raises ParseError with the line."""
    tables = sections(text, file)
    for name in ("NODES", "PORTS", "LINKS"):
        if name not in tables or not tables[name].rows:
            raise ParseError(f"section {name} is missing or empty", where=file, remedy=REMEDY)
    fabric = _fabric(tables)
    none = IbdiagnetSection("", (), (), 0)
    telemetry = Telemetry(
        counters=dict(_counters(tables.get("PM_INFO", none))),
        error_rates=dict(_error_rates(tables)),
        transceivers=dict(_transceivers(tables.get("CABLE_INFO", none))),
        temperatures=dict(_temperatures(tables.get("TEMP_SENSING", none))),
        firmware=dict(_firmware(tables.get("NODES_INFO", none))),
    )
    return fabric, telemetry


def _fabric(tables: Mapping[str, IbdiagnetSection]) -> Fabric:
    ports = {_port(row): row for row in tables["PORTS"].rows}
    by_device: dict[Guid, list[IbdiagnetRow]] = {}
    for port, row in ports.items():
        by_device.setdefault(port.guid, []).append(row)
    devices: dict[Guid, Device] = {}
    for row in tables["NODES"].rows:
        guid = row.guid(*_NODE)
        if guid in devices:
            raise row.error("NodeGUID", f"{guid} a second time: duplicate GUID")
        devices[guid] = _device(guid, row, by_device.get(guid, []))
    links = _links(tables["LINKS"].rows, ports, devices)
    for port, row in ports.items():
        if port.number and port not in links and row.text("portstate") in _UP:
            raise row.error("port", f"{port.number} of {port.guid} is up and has no link: output cut off")
    return Fabric(devices, tuple({link.a: link for link in links.values()}.values()))


def _links(
    rows: Iterable[IbdiagnetRow], ports: Mapping[PortId, IbdiagnetRow], devices: Mapping[Guid, Device]
) -> dict[PortId, Link]:
    """Return each link by both of its ends."""
    links: dict[PortId, Link] = {}
    for row in rows:
        link = _link(row, ports, devices)
        for end in (link.a, link.b):
            if end in links:
                raise row.error("link", f"from {end.guid} port {end.number}, which has another link")
            links[end] = link
    return links


def _device(guid: Guid, row: IbdiagnetRow, ports: list[IbdiagnetRow]) -> Device:
    kind = _KINDS.get(row.number("nodetype"))
    if kind is None:
        raise row.error("NodeType", "is unknown")
    system = row.text("systemimageguid")
    lids = {port.number("lid"): None for port in ports if port.text("lid")}
    own = {port.guid("portguid"): None for port in ports} if kind is not DeviceKind.SWITCH else {}
    return Device(
        guid=guid,
        kind=kind,
        description=row.text("nodedesc"),
        ports=row.number("numports"),
        device_id=row.number("deviceid") if row.text("deviceid") else 0,
        system_guid=row.guid("systemimageguid") if system else None,
        port_guids=tuple(own),
        lids=tuple(lid for lid in lids if lid),
    )


def _link(row: IbdiagnetRow, ports: Mapping[PortId, IbdiagnetRow], devices: Mapping[Guid, Device]) -> Link:
    ends = tuple(PortId(row.guid(f"nodeguid{n}"), row.number(f"portnum{n}")) for n in (1, 2))
    rates = []
    for end in ends:
        if end.guid not in devices or end not in ports:
            raise row.error("link", f"to {end.guid} port {end.number}, which is not described: output cut off")
        width = _WIDTHS.get(ports[end].number("linkwidthactv"))
        speed = _SPEEDS.get(ports[end].number("linkspeedactv"))
        if width is None or speed is None:
            raise ports[end].error("LinkWidthActv and LinkSpeedActv", "are not a known rate")
        rates.append((width, speed))
    if ends[0] == ends[1]:
        raise row.error("link", "connects a port with itself")
    width, speed = min(rates, key=lambda rate: rate[0] * LANE_GBPS[rate[1]])
    return Link(min(ends), max(ends), width, speed)


def _port(row: IbdiagnetRow) -> PortId:
    return PortId(row.guid(*_NODE), row.number(*_PORT_NUMBER))


def _counters(section: IbdiagnetSection) -> Iterator[tuple[PortId, PortCounters]]:
    """Yield the extended counters where the section has them all, else those of PortCounters."""
    wide = all(section.has(f"{name.lower()}ext") for name in ("SymbolErrorCounter", "LinkDownedCounter"))
    for row in section.rows:
        values = {}
        for name in (*HIGHEST, *TRAFFIC):
            plain = name.lower()
            columns = (f"{plain}ext", f"{plain}extended", plain) if wide else (plain,)
            if row.text(*columns):
                values[name] = row.number(*columns)
        yield _port(row), PortCounters(values, narrow=not wide)


def _error_rates(tables: Mapping[str, IbdiagnetSection]) -> Iterator[tuple[PortId, ErrorRates]]:
    """Yield error rates from all sections that have them: section names differ between releases."""
    for section in tables.values():
        if section.has("effectiveber") and section.has("nodeguid"):
            for row in section.rows:
                yield _port(row), ErrorRates(*(_measured(row, f"{kind}ber") for kind in ("raw", "effective", "symbol")))


def _transceivers(section: IbdiagnetSection) -> Iterator[tuple[PortId, Transceiver]]:
    for row in section.rows:
        yield (
            _port(row),
            Transceiver(
                vendor=row.text("vendor"),
                part=row.text("pn"),
                serial=row.text("sn"),
                firmware=row.text("fwversion"),
                length=row.text("lengthdesc", "lengthstring"),
                temperature_c=_measured(row, "temperature"),
            ),
        )


def _temperatures(section: IbdiagnetSection) -> Iterator[tuple[Guid, float]]:
    column = next((name for name in section.columns if "temp" in name), "")
    for row in section.rows:
        value = _measured(row, column)
        if value is not None:
            yield row.guid(*_NODE), value


def _firmware(section: IbdiagnetSection) -> Iterator[tuple[Guid, str]]:
    parts = [[f"fwinfo{extended}{part}" for extended in ("extended", "")] for part in ("major", "minor", "subminor")]
    for row in section.rows:
        if all(row.text(*columns) for columns in parts):
            yield row.guid(*_NODE), ".".join(str(row.number(*columns)) for columns in parts)


def _measured(row: IbdiagnetRow, column: str) -> float | None:
    """Return a number without its unit (`42C`); None where there is none."""
    text = row.text(column).removesuffix("C").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise row.error(column, "is not a number") from None
    if not math.isfinite(value):
        raise row.error(column, "is not a number")
    return value
