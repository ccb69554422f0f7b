"""The vendor's sheet: one machine a line, as the supplier or the data centre sends it."""

from __future__ import annotations

import csv
import io
import stat
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.edges.site.model import address
from clusterctl.edges.site.textfile import read_text
from clusterctl.fleet.errors import UsageError

COLUMNS = {
    "name": ("name", "hostname", "node"),
    "bmc": ("bmc_address", "bmc", "bmc_ip", "idrac_ip", "ipmi_ip"),
    "serial": ("serial", "service_tag", "serial_number"),
    "user": ("bmc_user", "factory_user", "user"),
    "password": ("bmc_password", "factory_password", "password"),
    "rack": ("rack",),
    "unit": ("unit", "u", "rack_unit"),
}
"""Our name of each column, and the headings that vendors give it (case and blanks do not matter)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One machine of the sheet; `where` names file and line."""

    where: str
    name: str
    bmc: str
    serial: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    rack: str = ""
    unit: int | None = None


def read_sheet(file: Path) -> tuple[Row, ...]:
    """All machines of a CSV; errors name file, line and column."""
    text = read_text(file)
    reader = csv.reader(io.StringIO(text))
    header = next(reader, None)
    if not header:
        raise UsageError("is empty", where=str(file), remedy="its first line names the columns: name,bmc_address,…")
    index = _columns(header, file)
    if "password" in index and stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise UsageError("holds passwords and others may read it", where=str(file), remedy=f"chmod 600 {file}")
    return tuple(
        _row(cells, index, f"{file}:{reader.line_num}") for cells in reader if any(cell.strip() for cell in cells)
    )


def _columns(header: list[str], file: Path) -> dict[str, int]:
    headings = [cell.strip().lower().replace(" ", "_") for cell in header]
    index = {
        ours: headings.index(theirs)
        for ours, names in COLUMNS.items()
        for theirs in reversed(names)
        if theirs in headings
    }
    for required in ("name", "bmc"):
        if required not in index:
            names = " or ".join(COLUMNS[required])
            raise UsageError(
                f"has no column {names}; found {', '.join(headings)}", where=f"{file}:1", remedy="name it in line 1"
            )
    return index


def _row(cells: list[str], index: dict[str, int], where: str) -> Row:
    values = {ours: cells[at].strip() if at < len(cells) else "" for ours, at in index.items()}
    if not values["name"]:
        raise UsageError("the name is empty", where=where, remedy="give each machine a name")
    try:
        bmc = address(values["bmc"])
    except ValueError as error:
        raise UsageError(
            f"bmc_address {error}, found {values['bmc']!r}", where=where, remedy="write the BMC's IP address"
        ) from None
    return Row(
        where=where,
        name=values["name"].lower(),
        bmc=bmc,
        serial=values.get("serial", ""),
        user=values.get("user", ""),
        password=values.get("password", ""),
        rack=values.get("rack", ""),
        unit=_unit(values.get("unit", ""), where),
    )


def _unit(text: str, where: str) -> int | None:
    digits = text.lower().removeprefix("u")
    if not digits:
        return None
    if not digits.isdigit() or not 1 <= int(digits) <= 60:
        raise UsageError(f"unit must be 1 to 60, found {text!r}", where=where, remedy="write the lowest rack unit")
    return int(digits)
