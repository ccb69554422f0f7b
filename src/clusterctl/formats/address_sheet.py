"""The sheet of hosts' addresses: CSV of `node`, `interface`, `address`, `mac`, an interface of a node a line."""

from __future__ import annotations

from ipaddress import ip_address, ip_interface

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.host_network_rules import GivenAddress
from clusterctl.fleet.node import Mac
from clusterctl.formats.delimited import read_table
from clusterctl.formats.macs import read_mac

COLUMNS = ("node", "interface", "address", "mac")
"""The first two are required; a line has an address, a MAC, or both."""


def read_address_sheet(text: str, file: str) -> tuple[GivenAddress, ...]:
    """Raises `UsageError` naming file, line and column."""
    table = read_table(text, file)
    headings = [heading.lower() for heading in table.headings]
    strange = [heading for heading in headings if heading not in COLUMNS]
    missing = [name for name in COLUMNS[:2] if name not in headings]
    if strange or missing or len(set(headings)) < len(headings):
        message = f"its columns are {', '.join(table.headings)}"
        raise UsageError(message, where=f"{file}:1", remedy=f"write in its first line: {','.join(COLUMNS)}")
    return tuple(_row(dict(zip(headings, cells, strict=False)), f"{file}:{line}") for line, cells in table.rows)


def _row(cells: dict[str, str], where: str) -> GivenAddress:
    told = {name: cells.get(name, "").strip() for name in COLUMNS}
    for required in COLUMNS[:2]:
        if not told[required]:
            raise UsageError("is empty", where=f"{where} {required}", remedy="name the node and its interface")
    if not told["address"] and not told["mac"]:
        raise UsageError("tells neither address nor MAC", where=where, remedy="fill one of them in, or take it out")
    return GivenAddress(
        told["node"].lower(), told["interface"], _address(told["address"], where), where, _mac(told["mac"], where)
    )


def _address(text: str, where: str) -> str:
    """Canonical, with the prefix where one is written."""
    try:
        return "" if not text else str(ip_interface(text)) if "/" in text else str(ip_address(text))
    except ValueError:
        message = f"must be an IP address, like 10.20.0.17 or 10.20.0.17/16, found {text[:60]!r}"
        raise UsageError(message, where=f"{where} address", remedy="write one of the host, or leave it empty") from None


def _mac(text: str, where: str) -> Mac | None:
    try:
        return read_mac(text) if text else None
    except ValueError as error:
        remedy = "copy it from the port's label"
        raise UsageError(f"{error}, found {text[:40]!r}", where=f"{where} mac", remedy=remedy) from None
