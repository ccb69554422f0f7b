"""ibdiagnet2's `db_csv` → the fabric (NODES, PORTS, LINKS) and its telemetry (PM_INFO, CABLE_INFO, TEMP_SENSING …)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric import LANE_GBPS, Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.node import Guid
from clusterctl.fleet.telemetry import HIGHEST, TRAFFIC, ErrorRates, PortCounters, Telemetry, Transceiver
from clusterctl.formats.db_csv import REMEDY, Row, Section, sections

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
"""ibdiagnet's LinkSpeedActv: one byte each for PortInfo's speeds, its extended ones, the vendor's, extended ones 2."""
_UP = frozenset({"2", "3", "4"})
"""PortState of a port whose link is up: initialised, armed, active."""
_NODE, _NUMBER = ("nodeguid",), ("portnum", "portnumber")


def parse_db_csv(text: str, *, file: str = "ibdiagnet2.db_csv") -> tuple[Fabric, Telemetry]:
    """Both; a telemetry section that is not there leaves its mapping empty. Raises ParseError with the line."""
    tables = sections(text, file)
    for name in ("NODES", "PORTS", "LINKS"):
        if name not in tables or not tables[name].rows:
            raise ParseError(f"section {name} is missing or empty", where=file, remedy=REMEDY)
    fabric = _fabric(tables)
    none = Section("", (), (), 0)
    telemetry = Telemetry(
        counters=dict(_counters(tables.get("PM_INFO", none))),
        error_rates=dict(_error_rates(tables)),
        transceivers=dict(_transceivers(tables.get("CABLE_INFO", none))),
        temperatures=dict(_temperatures(tables.get("TEMP_SENSING", none))),
        firmware=dict(_firmware(tables.get("NODES_INFO", none))),
    )
    return fabric, telemetry


def _fabric(tables: Mapping[str, Section]) -> Fabric:
    ports = {_port(row): row for row in tables["PORTS"].rows}
    by_device: dict[Guid, list[Row]] = {}
    for port, row in ports.items():
        by_device.setdefault(port.guid, []).append(row)
    devices: dict[Guid, Device] = {}
    for row in tables["NODES"].rows:
        guid = row.guid(*_NODE)
        if guid in devices:
            raise row.error("NodeGUID", f"{guid} a second time: duplicate GUID")
        devices[guid] = _device(guid, row, by_device.get(guid, []))
    links: dict[PortId, Link] = {}
    for row in tables["LINKS"].rows:
        link = _link(row, ports, devices)
        for end in (link.a, link.b):
            if end in links:
                raise row.error("link", f"from {end.guid} port {end.number}, which has another one")
            links[end] = link
    for port, row in ports.items():
        if port.number and port not in links and row.text("portstate") in _UP:
            raise row.error("port", f"{port.number} of {port.guid} is up and in no link: cut off")
    return Fabric(devices, tuple({link.a: link for link in links.values()}.values()))


def _device(guid: Guid, row: Row, ports: list[Row]) -> Device:
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


def _link(row: Row, ports: Mapping[PortId, Row], devices: Mapping[Guid, Device]) -> Link:
    ends = tuple(PortId(row.guid(f"nodeguid{n}"), row.number(f"portnum{n}")) for n in (1, 2))
    rates = []
    for end in ends:
        if end.guid not in devices or end not in ports:
            raise row.error("link", f"to {end.guid} port {end.number}, which is not described: cut off")
        width = _WIDTHS.get(ports[end].number("linkwidthactv"))
        speed = _SPEEDS.get(ports[end].number("linkspeedactv"))
        if width is None or speed is None:
            raise ports[end].error("LinkWidthActv and LinkSpeedActv", "are no known rate")
        rates.append((width, speed))
    if ends[0] == ends[1]:
        raise row.error("link", "is its own far end")
    width, speed = min(rates, key=lambda rate: rate[0] * LANE_GBPS[rate[1]])
    return Link(min(ends), max(ends), width, speed)


def _port(row: Row) -> PortId:
    return PortId(row.guid(*_NODE), row.number(*_NUMBER))


def _counters(section: Section) -> Iterator[tuple[PortId, PortCounters]]:
    """The extended counters where the section has all of them, else those of PortCounters."""
    wide = all(section.has(f"{name.lower()}ext") for name in ("SymbolErrorCounter", "LinkDownedCounter"))
    for row in section.rows:
        values = {}
        for name in (*HIGHEST, *TRAFFIC):
            plain = name.lower()
            columns = (f"{plain}ext", f"{plain}extended", plain) if wide else (plain,)
            if row.text(*columns):
                values[name] = row.number(*columns)
        yield _port(row), PortCounters(values, narrow=not wide)


def _error_rates(tables: Mapping[str, Section]) -> Iterator[tuple[PortId, ErrorRates]]:
    """From whichever sections name them: their names differ from release to release."""
    for section in tables.values():
        if section.has("effectiveber") and section.has("nodeguid"):
            for row in section.rows:
                yield _port(row), ErrorRates(*(_measured(row, f"{kind}ber") for kind in ("raw", "effective", "symbol")))


def _transceivers(section: Section) -> Iterator[tuple[PortId, Transceiver]]:
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


def _temperatures(section: Section) -> Iterator[tuple[Guid, float]]:
    column = next((name for name in section.columns if "temp" in name), "")
    for row in section.rows:
        value = _measured(row, column)
        if value is not None:
            yield row.guid(*_NODE), value


def _firmware(section: Section) -> Iterator[tuple[Guid, str]]:
    parts = [[f"fwinfo{extended}{part}" for extended in ("extended", "")] for part in ("major", "minor", "subminor")]
    for row in section.rows:
        if all(row.text(*columns) for columns in parts):
            yield row.guid(*_NODE), ".".join(str(row.number(*columns)) for columns in parts)


def _measured(row: Row, column: str) -> float | None:
    """A figure, with or without a unit behind it (`42C`); None where there is none."""
    text = row.text(column).removesuffix("C").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise row.error(column, "is no figure") from None
    if not math.isfinite(value):
        raise row.error(column, "is no figure")
    return value
