"""Kea's lease file (memfile, CSV with headings, IPv4 or IPv6): appended as leases change, so the last line of an
address counts.

Columns are looked up by name: `address`, `hwaddr`, `valid_lifetime`, `hostname`, `state`; a comma inside a value is
written `&#x2c`. Source: Kea Administrator Reference Manual, "Memfile - Basic Storage for Leases".
"""

from __future__ import annotations

from clusterctl.fleet.bmc import Lease
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.formats.delimited import read_table
from clusterctl.formats.macs import read_mac

_NEEDED = ("address", "hwaddr")
_IN_USE = ("", "0")
"""Of `state`; 1 is declined, 2 expired and reclaimed, 3 released."""


def is_kea(text: str) -> bool:
    """Whether the first line is Kea's headings."""
    headings = text.split("\n", 1)[0].split(",")
    return headings[0].strip() == "address" and "valid_lifetime" in headings


def read_kea(text: str, file: str) -> tuple[Lease, ...]:
    """The leases in force that have a hardware address. Raises `UsageError` naming file, line and column."""
    table = read_table(text, file)
    for name in _NEEDED:
        if name not in table.headings:
            raise UsageError(f"has no column {name}", where=f"{file}:1", remedy="take the file that Kea itself writes")
    found: dict[str, Lease] = {}
    for line, cells in table.rows:
        told = dict(zip(table.headings, (cell.strip() for cell in cells), strict=False))
        address = told.get("address", "")
        in_force = told.get("state", "") in _IN_USE and told.get("valid_lifetime") != "0"
        if in_force and told.get("hwaddr"):
            hostname = told.get("hostname", "").replace("&#x2c", ",").rstrip(".")
            found[address] = Lease(address, _mac(told["hwaddr"], file, line), hostname)
        else:
            found.pop(address, None)
    return tuple(found.values())


def _mac(text: str, file: str, line: int) -> Mac:
    try:
        return read_mac(text)
    except ValueError as error:
        where = f"{file}:{line} hwaddr"
        raise UsageError(f"{error}, found {text[:40]!r}", where=where, remedy="correct or remove the line") from None
