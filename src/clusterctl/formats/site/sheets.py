"""A MAC sheet or a vendor's delivery list (CSV): machines by serial, BMC MAC or both, and what else it knows of them.

Columns are known by their headings, of which vendors have many (case, blanks and dashes do not matter); others are left
alone. Passwords are secrets: `ListRow` shows and repeats none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_interface

from clusterctl.fleet.bmc.observation import Listed
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.rules import GivenAddress
from clusterctl.fleet.node import Mac
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.identifiers import read_mac
from clusterctl.formats.site.table import read_table

HEADINGS = {
    "serial": ("serial", "serial_number", "system_serial", "system_s/n", "s/n", "sn", "service_tag", "node_serial"),
    "bmc_mac": ("bmc_mac", "bmc_mac_address", "mac", "mac_address", "ipmi_mac", "idrac_mac", "ilo_mac", "bmc_mac_addr"),
    "name": ("name", "hostname", "node"),
    "rack": ("rack",),
    "unit": ("unit", "u", "rack_unit"),
    "user": ("bmc_user", "factory_user", "ipmi_user", "user", "username"),
    "password": ("bmc_password", "factory_password", "ipmi_password", "unique_password", "password", "pwd"),
    "password_ref": ("bmc_password_ref", "factory_password_ref", "password_ref"),
}
"""Our name of each column, and what vendors and data centres call it."""


@dataclass(frozen=True, slots=True)
class ListRow(NeverPickled):
    """One line: the machine, and its factory login where the list has it; `password_ref` is the place of the secret."""

    machine: Listed
    user: str = ""
    password: str = field(default="", repr=False)
    password_ref: str = ""


def read_bmc_list(text: str, file: str) -> tuple[ListRow, ...]:
    """Return all machines. Raises `UsageError` naming file, line and column; no error repeats a password."""
    table = read_table(text, file)
    index = _columns(table.headings, file)
    rows: list[ListRow] = []
    first: dict[str, str] = {}
    for line, cells in table.rows:
        values = {ours: cells[at].strip() if at < len(cells) else "" for ours, at in index.items()}
        rows.append(_list_row(values, file, line))
        _require_new(rows[-1].machine, first)
    return tuple(rows)


def _columns(headings: tuple[str, ...], file: str) -> Mapping[str, int]:
    plain = [heading.lower().replace(" ", "_").replace("-", "_") for heading in headings]
    index: dict[str, int] = {}
    for ours, names in HEADINGS.items():
        found = [at for at, heading in enumerate(plain) if heading in names]
        if len(found) > 1:
            both = " and ".join(headings[at] for at in found)
            raise UsageError(f"{both} both mean {ours}", where=f"{file}:1", remedy="keep one of the columns")
        if found:
            index[ours] = found[0]
    if not {"serial", "bmc_mac"} & index.keys():
        message = f"has neither a column serial nor bmc_mac; found {', '.join(headings)}"
        raise UsageError(message, where=f"{file}:1", remedy="name the column that identifies the machines in line 1")
    return index


def _list_row(values: Mapping[str, str], file: str, line: int) -> ListRow:
    where = f"{file}:{line}"
    serial, mac = values.get("serial", ""), values.get("bmc_mac", "")
    if not serial and not mac:
        raise UsageError(
            "has neither serial nor MAC address", where=where, remedy="fill in one of them, or drop the line"
        )
    if values.get("password") and values.get("password_ref"):
        remedy = "keep the reference, and take the password out"
        raise UsageError("has a password and a reference to one", where=where, remedy=remedy)
    machine = Listed(
        where=where,
        serial=serial,
        bmc_mac=_bmc_mac(mac, where) if mac else None,
        name=values.get("name", "").lower(),
        rack=values.get("rack", ""),
        unit=read_unit(values.get("unit", ""), f"{where} unit"),
    )
    return ListRow(machine, values.get("user", ""), values.get("password", ""), values.get("password_ref", ""))


def _bmc_mac(text: str, where: str) -> Mac:
    try:
        return read_mac(text)
    except ValueError as error:
        message = f"{error}, found {text[:40]!r}"
        raise UsageError(message, where=f"{where} bmc_mac", remedy="copy it from the machine's label") from None


def read_unit(text: str, where: str) -> int | None:
    """Return 4 for `4` or `U4`; None where empty. Raise `UsageError` where it is no rack unit."""
    digits = text.lower().removeprefix("u")
    if not digits:
        return None
    if not re.fullmatch("[0-9]{1,2}", digits) or not 1 <= int(digits) <= 60:
        message = f"must be a rack unit, 1 to 60, found {text[:40]!r}"
        raise UsageError(message, where=where, remedy="write the lowest rack unit")
    return int(digits)


def _require_new(machine: Listed, first: dict[str, str]) -> None:
    """Raise `UsageError` where a serial or MAC address stands twice in a list."""
    for what in (machine.serial.lower(), str(machine.bmc_mac or "")):
        if what and what in first:
            message = f"{what} stands here and at {first[what]}"
            raise UsageError(message, where=machine.where, remedy="each machine has its own: correct the wrong line")
        if what:
            first[what] = machine.where


COLUMNS = ("node", "interface", "address", "mac")
"""The first two are required; a line has an address, a MAC, or both."""


def read_address_sheet(text: str, file: str) -> tuple[GivenAddress, ...]:
    """Return the addresses of a sheet. Raises `UsageError` with file, line and column."""
    table = read_table(text, file)
    headings = [heading.lower() for heading in table.headings]
    strange = [heading for heading in headings if heading not in COLUMNS]
    missing = [name for name in COLUMNS[:2] if name not in headings]
    if strange or missing or len(set(headings)) < len(headings):
        message = f"its columns are {', '.join(table.headings)}"
        raise UsageError(message, where=f"{file}:1", remedy=f"write in its first line: {','.join(COLUMNS)}")
    return tuple(_address_row(dict(zip(headings, cells, strict=False)), f"{file}:{line}") for line, cells in table.rows)


def _address_row(cells: dict[str, str], where: str) -> GivenAddress:
    values = {name: cells.get(name, "").strip() for name in COLUMNS}
    for required in COLUMNS[:2]:
        if not values[required]:
            raise UsageError("is empty", where=f"{where} {required}", remedy="name the node and its interface")
    if not values["address"] and not values["mac"]:
        raise UsageError("has neither address nor MAC", where=where, remedy="fill one of them in, or take it out")
    return GivenAddress(
        values["node"].lower(),
        values["interface"],
        _address(values["address"], where),
        where,
        _host_mac(values["mac"], where),
    )


def _address(text: str, where: str) -> str:
    """Return the canonical address, with its prefix where it has one."""
    try:
        return "" if not text else str(ip_interface(text)) if "/" in text else str(ip_address(text))
    except ValueError:
        message = f"must be an IP address, like 10.20.0.17 or 10.20.0.17/16, found {text[:60]!r}"
        raise UsageError(message, where=f"{where} address", remedy="write one of the host, or leave it empty") from None


def _host_mac(text: str, where: str) -> Mac | None:
    try:
        return read_mac(text) if text else None
    except ValueError as error:
        remedy = "copy it from the port's label"
        raise UsageError(f"{error}, found {text[:40]!r}", where=f"{where} mac", remedy=remedy) from None
