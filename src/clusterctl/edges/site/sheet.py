"""Reads the machines of a site: the vendor's sheet (one machine in each line), the list and the ranges."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clusterctl.edges.site.textfile import read_text
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.formats.certificate_pin import parse_pin
from clusterctl.formats.identifiers import read_mac
from clusterctl.formats.site.sheets import read_unit
from clusterctl.formats.site.table import read_table
from clusterctl.formats.site.yaml_document import Document
from clusterctl.site.nodes import NodesSettings, SiteNode, canonical_address, expand_range, require_valid

COLUMNS = {
    "name": ("name", "hostname", "node"),
    "bmc": ("bmc_address", "bmc", "bmc_ip", "idrac_ip", "ipmi_ip"),
    "serial": ("serial", "service_tag", "serial_number"),
    "user": ("bmc_user", "factory_user", "user"),
    "password": ("bmc_password", "factory_password", "password"),
    "rack": ("rack",),
    "unit": ("unit", "u", "rack_unit"),
    "pdu": ("pdu", "power_feed", "feed"),
    "bmc_mac": ("bmc_mac", "bmc_mac_address", "idrac_mac", "ilo_mac", "ipmi_mac"),
    "boot_mac": ("boot_mac", "host_mac", "pxe_mac"),
    "login": ("bmc_login",),
    "address": ("address", "host_address", "host_ip"),
    "tls_fingerprint": ("tls_fingerprint", "bmc_tls_fingerprint", "certificate_sha256"),
}
"""The field of each column, and its possible headings (case and blanks do not matter)."""


def read_nodes(
    folder: Path, settings: NodesSettings, document: Document, *, may_be_empty: bool = False
) -> tuple[SiteNode, ...]:
    """Return all machines of the site. Raises `UsageError` if there is none, or two share a unique value.

    `may_be_empty`: no machine, and a sheet that does not exist, are accepted.
    """
    sheet = None if settings.csv is None else folder / settings.csv
    if may_be_empty and sheet is not None and not os.path.lexists(sheet):
        sheet = None
    nodes = tuple(_nodes(sheet, settings, document))
    if not nodes and not may_be_empty:
        remedy = "write one machine in each line below the headings" if sheet else "fill the list or the ranges"
        where = document.where("nodes", "csv") if sheet else document.where("nodes")
        raise UsageError("the site names no machine", where=where, remedy=remedy)
    require_valid(nodes)
    return nodes


def _nodes(sheet: Path | None, settings: NodesSettings, document: Document) -> Iterator[SiteNode]:
    if sheet is not None:
        yield from read_sheet(sheet, document.where("nodes", "csv"))
    for index, item in enumerate(settings.listed):
        own = {name: getattr(item, name) for name in ("rack", "unit", "tls_fingerprint", "pdu", "address")}
        yield SiteNode(document.where("nodes", "list", index), item.name, item.bmc, item.serial, **own)
    taken = {item.bmc for item in settings.listed if item.bmc}
    number = 0
    for index, text in enumerate(settings.ranges):
        for host in expand_range(text):
            number += 1
            if host not in taken:
                where = document.where("nodes", "ranges", index)
                yield SiteNode(where, f"{settings.name_prefix}{number:03d}", host)


@dataclass(frozen=True, slots=True)
class SheetColumns:
    """Where each of our columns stands in the file, and what it is called there."""

    file: Path
    index: Mapping[str, int]
    headings: tuple[str, ...]

    def values(self, cells: list[str]) -> dict[str, str]:
        return {ours: cells[at].strip() if at < len(cells) else "" for ours, at in self.index.items()}

    def where(self, line: int, ours: str = "") -> str:
        return f"{self.file}:{line} {self.headings[self.index[ours]] if ours in self.index else ours}".rstrip()


def read_sheet(file: Path, named_by: str = "") -> tuple[SiteNode, ...]:
    """Return all machines of a CSV; errors name file, line and column, or the field `named_by` without a file."""
    table = read_table(read_text(file, named_by), str(file))
    columns = sheet_columns(table.headings, file)
    rows = tuple(_row(cells, columns, line) for line, cells in table.rows)
    if "password" in columns.index and stat.S_IMODE(file.stat().st_mode) & 0o077:
        where = columns.where(1, "password")
        raise UsageError("holds passwords and others may read it", where=where, remedy=f"chmod 600 {file}")
    return rows


def sheet_rows(text: str, file: Path) -> tuple[SiteNode, ...]:
    """Return the machines of a sheet's text."""
    table = read_table(text, str(file))
    columns = sheet_columns(table.headings, file)
    return tuple(_row(cells, columns, line) for line, cells in table.rows)


def sheet_columns(headings: tuple[str, ...], file: Path) -> SheetColumns:
    """Return the columns by their headings. Raises `UsageError` for a column that stands twice, or is missing.

    A sheet of machines without BMCs may lack the column of their addresses; it has that of the hosts' instead.
    """
    index = {name: at for name in COLUMNS if (at := _column(name, headings, file)) is not None}
    required = ["name"] if "address" in index else ["name", "bmc"]
    for missing in (name for name in required if name not in index):
        allowed = " or ".join(COLUMNS[missing])
        raise UsageError(
            f"has no column {allowed}; found {', '.join(headings)}", where=f"{file}:1", remedy="name it in line 1"
        )
    return SheetColumns(file, index, headings)


def _column(name: str, headings: tuple[str, ...], file: Path) -> int | None:
    """Return the place of a column; None where there is none. Raises `UsageError` where there are several."""
    plain = [cell.lower().replace(" ", "_") for cell in headings]
    found = [at for at, heading in enumerate(plain) if heading in COLUMNS[name]]
    if len(found) <= 1:
        return found[0] if found else None
    twice = " and ".join(headings[at] for at in found)
    message = f"{twice} mean the same, {name}" if len({plain[at] for at in found}) > 1 else "stands twice"
    raise UsageError(message, where=f"{file}:1 {headings[found[1]]}", remedy="keep one of the columns")


def _row(cells: list[str], columns: SheetColumns, line: int) -> SiteNode:
    if len(cells) > len(columns.headings):
        message = f"{len(cells)} cells, but the header has {len(columns.headings)} columns"
        raise UsageError(message, where=columns.where(line), remedy="put a cell that holds a comma in quotes")
    values: dict[str, Any] = {ours: text for ours, text in columns.values(cells).items() if text}
    if "name" not in values:
        raise UsageError("the name is empty", where=columns.where(line, "name"), remedy="give each machine a name")
    for ours, read in _READ.items():
        if ours in values:
            values[ours] = read(values[ours], partial(columns.where, line, ours))
    return SiteNode(where=columns.where(line), **({"bmc": ""} | values))


Place = Callable[[], str]
"""Returns file, line and column of a cell: asked for where the cell is wrong."""
_UNITS = frozenset(map(str, range(1, 61)))


def _lower(text: str, _place: Place) -> str:
    return text.lower()


def _bmc(text: str, place: Place) -> str:
    return _address(text, place, "the BMC's")


def _host(text: str, place: Place) -> str:
    return _address(text, place, "the host's")


def _address(text: str, place: Place, owner: str) -> str:
    try:
        return canonical_address(text)
    except ValueError as error:
        raise UsageError(f"{error}, found {text!r}", where=place(), remedy=f"write {owner} IP address") from None


def _unit(text: str, place: Place) -> int | None:
    return int(text) if text in _UNITS else read_unit(text, place())


def _mac(text: str, place: Place) -> Mac:
    try:
        return read_mac(text)
    except ValueError as error:
        raise UsageError(f"{error}, found {text[:40]!r}", where=place(), remedy="copy it from its label") from None


def _fingerprint(text: str, place: Place) -> str:
    try:
        return parse_pin(text)
    except ValueError as error:
        remedy = "print it: openssl x509 -noout -fingerprint -sha256 -in CERTIFICATE"
        raise UsageError(f"{error}, found {text!r}", where=place(), remedy=remedy) from None


_READ: Mapping[str, Callable[[str, Place], object]] = {
    "name": _lower,
    "bmc": _bmc,
    "unit": _unit,
    "tls_fingerprint": _fingerprint,
    "bmc_mac": _mac,
    "login": _lower,
    "boot_mac": _mac,
    "address": _host,
}
"""How the columns that are not taken as they are written are read, in the order in which errors are found."""
