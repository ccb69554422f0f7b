"""The sheet, brought up to date with what a sweep found: lines are found by serial, and operators' entries are kept.

Secrets are never written; those that stand in the sheet already stay as they are.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import count
from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.site.sheet import SheetColumns, read_sheet, sheet_columns, sheet_rows
from clusterctl.edges.site.textfile import read_text
from clusterctl.fleet.bmc.reconciliation import Entry
from clusterctl.fleet.csv_text import csv_text
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.table import read_table, secret_columns
from clusterctl.site.nodes import require_valid

HEADINGS = {
    "name": "name",
    "bmc": "bmc_address",
    "serial": "serial",
    "rack": "rack",
    "unit": "unit",
    "bmc_mac": "bmc_mac",
    "login": "bmc_login",
}
_ALWAYS = ("name", "bmc", "serial", "rack", "unit", "bmc_mac")
_FROM_FOUND = ("bmc", "serial", "bmc_mac", "login")
"""Cells in which what was found goes before what was written; others are only filled in."""


@dataclass(frozen=True, slots=True)
class SheetUpdate:
    """The text to be written, the file's mode, and what it changes, a sentence each; none where it is up to date."""

    file: Path
    text: str
    mode: int
    changes: tuple[str, ...]

    def write(self) -> None:
        """Write whole or not at all; where the sheet is a link, to its target."""
        if self.changes:
            with disk_explained("the sheet cannot be written", self.file):
                write_whole(self.file.resolve(), self.text.encode(), mode=self.mode, over=True)


def sheet_update(file: Path, entries: Sequence[Entry], logins: Collection[str], prefix: str) -> SheetUpdate:
    """Return the update. `logins`: names that `bmc_login` may have; `prefix` begins the names of unnamed machines.

    Raises `UsageError` where the sheet that is there cannot be read, or the new one could not be.
    """
    draft = SheetDraft.read(file) if file.exists() else SheetDraft.empty(file)
    kept = stat.S_IMODE(file.stat().st_mode) & 0o666 if file.exists() else 0o644
    mode = 0o600 if "password" in draft.columns.index else kept
    changes = tuple(_changes(draft, entries, logins, prefix))
    text = draft.text()
    try:
        require_valid(sheet_rows(text, file))
    except UsageError as error:
        message = f"the sheet would not be sound with what was found: {error.message}"
        remedy = error.remedy or "correct the sheet by hand, then sweep again"
        raise UsageError(message, where=error.where, remedy=remedy) from None
    return SheetUpdate(file, text, mode, changes)


@dataclass(slots=True)
class SheetDraft:
    """Headings and cells of the sheet, as they will be written."""

    columns: SheetColumns
    headings: list[str]
    rows: list[list[str]]

    @classmethod
    def empty(cls, file: Path) -> SheetDraft:
        headings = [HEADINGS[name] for name in _ALWAYS]
        return cls(sheet_columns(tuple(headings), file), headings, [])

    @classmethod
    def read(cls, file: Path) -> SheetDraft:
        read_sheet(file)  # raises where it would not be accepted as it is
        table = read_table(read_text(file), str(file))
        width = len(table.headings)
        rows = [[*cells, *[""] * (width - len(cells))] for _, cells in table.rows]
        return cls(sheet_columns(table.headings, file), list(table.headings), rows)

    def cell(self, row: list[str], name: str) -> str:
        at = self.columns.index.get(name)
        return row[at].strip() if at is not None else ""

    def put(self, row: list[str], name: str, value: str, heading: str = "") -> None:
        """Set a cell; a missing column is added under `heading`."""
        if name not in self.columns.index:
            self.headings.append(heading or HEADINGS[name])
            for each in self.rows:
                each.append("")
            self.columns = sheet_columns(tuple(self.headings), self.columns.file)
        row[self.columns.index[name]] = value

    def add(self) -> list[str]:
        self.rows.append([""] * len(self.headings))
        return self.rows[-1]

    def text(self) -> str:
        return csv_text([self.headings, *self.rows], verbatim=secret_columns(self.headings))


def _changes(draft: SheetDraft, entries: Sequence[Entry], logins: Collection[str], prefix: str) -> Iterator[str]:
    """Change the draft and yield what changes. A row belongs to its serial; without a serial, to its address."""
    fresh = []
    by_serial = {serial.lower(): row for row in draft.rows if (serial := draft.cell(row, "serial"))}
    by_address = {draft.cell(row, "bmc"): row for row in draft.rows if not draft.cell(row, "serial")}
    for entry in entries:
        row = by_serial.get(entry.serial.lower()) or by_address.get(entry.address)
        if row is None:
            fresh.append(entry)
        else:
            yield from _filled_in(draft, row, _values(entry, logins))
    yield from _added(draft, fresh, logins, prefix)


def _filled_in(draft: SheetDraft, row: list[str], values: Mapping[str, str]) -> Iterator[str]:
    """Change the cells of a row that differ from what was found, and yield each change."""
    name = draft.cell(row, "name")
    for column, value in values.items():
        before = draft.cell(row, column)
        if value and value.lower() != before.lower() and (column in _FROM_FOUND or not before):
            draft.put(row, column, value)
            yield f"{name}: {HEADINGS[column]} {before or 'empty'} → {value}"


def _added(draft: SheetDraft, fresh: Sequence[Entry], logins: Collection[str], prefix: str) -> Iterator[str]:
    """Add a row for each new machine, in the order of the racks, and yield each."""
    names = _free_names(draft, prefix, {entry.name for entry in fresh})
    for entry in sorted(fresh, key=_by_place):
        name = entry.name or next(names)
        row = draft.add()
        for column, value in {"name": name, **_values(entry, logins)}.items():
            if value:
                draft.put(row, column, value)
        yield f"{name}: new, serial {entry.serial} at {entry.address}"


def _values(entry: Entry, logins: Collection[str]) -> Mapping[str, str]:
    rack, unit = entry.place
    return {
        "bmc": entry.address,
        "serial": entry.serial,
        "rack": rack,
        "unit": str(unit) if unit is not None else "",
        "bmc_mac": entry.mac or "",
        "login": entry.observation.login if entry.observation.login in logins else "",
    }


def _free_names(draft: SheetDraft, prefix: str, promised: Collection[str]) -> Iterator[str]:
    """Yield `PREFIX001` …, without names that lines have or will get."""
    taken = {*promised, *(draft.cell(row, "name").lower() for row in draft.rows)}
    return (name for number in count(1) if (name := f"{prefix}{number:03d}") not in taken)


def _by_place(entry: Entry) -> tuple[str, int, int]:
    rack, unit = entry.place
    return rack, unit or 0, int(ip_address(entry.address))
