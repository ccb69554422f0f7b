"""The node sheet, brought up to date with a source of truth: lines are found by the source's id, serial or name.

A cell that an operator changed since the last import stays, unless it is to be overwritten. Columns and lines that the
source does not know are kept.
"""

from __future__ import annotations

import hashlib
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path

from clusterctl.edges.resources import resource
from clusterctl.edges.site.sheet import sheet_rows
from clusterctl.edges.site.sheet_update import SheetDraft
from clusterctl.fleet.natural_order import natural_key
from clusterctl.formats.identifiers import read_mac
from clusterctl.site.nodes import require_valid

HEADINGS = {
    "name": "name",
    "bmc": "bmc_address",
    "serial": "serial",
    "rack": "rack",
    "unit": "unit",
    "bmc_mac": "bmc_mac",
    "boot_mac": "boot_mac",
    "address": "address",
}
"""Our names of the columns that an import writes, and their headings."""


class CellState(StrEnum):
    """What becomes of one cell."""

    NEW = "new"
    CHANGED = "changed"
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """One cell: what the sheet has, and what the source has. `KEPT`: an operator changed it, so it stays."""

    node: str
    column: str
    before: str
    after: str
    state: CellState


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """One machine of the source: its id there, its name, and its cells by our names of the columns."""

    id: str
    name: str
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetImport:
    """The text to be written and the file's mode, what it changes, and what it leaves.

    names    the sheet's names of the machines, by the source's id
    written  the cells of each machine as of this import, by id: the base of the next one
    absent   machines of the sheet that the source does not have
    refused  machines that cannot stand in the sheet, with the reason
    renamed  machines with another name in the source: sheet → source
    by_hand  cells are replaced that an operator changed since the last import
    before   SHA-256 of the sheet as it was read, empty where there was none
    """

    file: Path
    text: str
    mode: int
    changes: tuple[CellChange, ...]
    names: Mapping[str, str]
    written: Mapping[str, Mapping[str, str]]
    absent: tuple[str, ...]
    refused: Mapping[str, str]
    renamed: Mapping[str, str]
    by_hand: bool
    before: str


@dataclass(slots=True)
class _Merge:
    """One attempt: the draft, and what was found on the way."""

    draft: SheetDraft
    base: Mapping[str, Mapping[str, str]]
    overwrite: bool
    changes: list[CellChange] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    written: dict[str, Mapping[str, str]] = field(default_factory=dict)
    matched: set[int] = field(default_factory=set)
    renamed: dict[str, str] = field(default_factory=dict)
    by_hand: bool = False

    def state(self, before: str, *, own: bool) -> CellState:
        """Return what becomes of a cell; `own`: an operator wrote it."""
        if own and not self.overwrite:
            return CellState.KEPT
        return CellState.CHANGED if before else CellState.NEW

    def unmatched(self) -> list[str]:
        """Return the nodes of the draft that no row of the source is for."""
        names = [self.draft.cell(row, "name").lower() for row in self.draft.rows]
        return [name for at, name in enumerate(names) if at not in self.matched]


def _without_collisions(rows: Sequence[SourceRow], begin: Callable[[], _Merge]) -> tuple[_Merge, dict[str, str]]:
    """Return the merge of the rows, and why some are left out: two rows of it would have one value that is unique."""
    refused: dict[str, str] = {}
    while True:
        wanted = [row for row in rows if row.name not in refused]
        merge = begin()
        _merge(merge, wanted)
        twice = _collisions(merge, wanted)
        if not twice:
            return merge, refused
        refused |= twice


def sheet_import(
    file: Path, rows: Sequence[SourceRow], base: Mapping[str, Mapping[str, str]], *, overwrite: bool
) -> SheetImport:
    """Return the import. `base`: the cells that the last import wrote, by the source's id.

    A missing sheet, and the example that `clusterctl init` writes, start empty. Raises `UsageError` where the
    sheet that is there cannot be read.
    """
    before = content_digest(file)
    kept = file.exists() and not is_example(file)
    mode = stat.S_IMODE(file.stat().st_mode) & 0o666 if file.exists() else 0o644
    merge, refused = _without_collisions(
        rows, lambda: _Merge(SheetDraft.read(file) if kept else SheetDraft.empty(file), base, overwrite)
    )
    absent = tuple(name for name in merge.unmatched() if name not in refused)
    text = merge.draft.text()
    if merge.draft.rows:
        require_valid(sheet_rows(text, file))
    return SheetImport(
        file=file,
        text=text,
        mode=0o600 if "password" in merge.draft.columns.index else mode,
        changes=tuple(merge.changes),
        names=merge.names,
        written=merge.written,
        absent=absent,
        refused=refused,
        renamed=merge.renamed,
        by_hand=merge.by_hand,
        before=before,
    )


def content_digest(file: Path) -> str:
    """Return the SHA-256 of a file, empty where there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def is_example(file: Path) -> bool:
    """Return whether a file of the site is still the example that `clusterctl init` writes."""
    example = resource("site") / file.name
    return example.is_file() and example.read_bytes() == file.read_bytes()


def _merge(merge: _Merge, rows: Sequence[SourceRow]) -> None:
    find = _finder(merge)
    fresh = []
    for row in rows:
        at = find(row)
        if at is None:
            fresh.append(row)
        else:
            merge.matched.add(at)
            _update(merge, row, merge.draft.rows[at])
    for row in sorted(fresh, key=lambda one: natural_key(one.name)):
        merge.matched.add(len(merge.draft.rows))
        _update(merge, row, _added(merge, row))


def _finder(merge: _Merge) -> Callable[[SourceRow], int | None]:
    """Return the search for the line of a machine: by the name that it was imported as, its serial, its name."""
    cells = [(merge.draft.cell(row, "name").lower(), merge.draft.cell(row, "serial")) for row in merge.draft.rows]
    by_name = {name: at for at, (name, _) in enumerate(cells)}
    by_serial = {serial.casefold(): at for at, (_, serial) in enumerate(cells) if serial}

    def find(row: SourceRow) -> int | None:
        known = by_name.get(merge.base.get(row.id, {}).get("name", ""))
        if known is None and row.cells.get("serial"):
            known = by_serial.get(row.cells["serial"].casefold())
        found = by_name.get(row.name) if known is None else known
        return None if found in merge.matched else found

    return find


def _added(merge: _Merge, row: SourceRow) -> list[str]:
    """Add a line with the name and all cells of a machine."""
    line = merge.draft.add()
    merge.draft.put(line, "name", row.name, HEADINGS["name"])
    merge.changes.append(CellChange(node=row.name, column="name", before="", after=row.name, state=CellState.NEW))
    return line


def _update(merge: _Merge, row: SourceRow, line: list[str]) -> None:
    """Bring the cells of a line up to date, and note each change."""
    name = merge.draft.cell(line, "name").lower()
    merge.names[row.id] = name
    if name != row.name:
        merge.renamed[name] = row.name
    base = merge.base.get(row.id, {})
    written = {"name": name}
    for column, after in row.cells.items():
        before = merge.draft.cell(line, column)
        if _same(column, before, after):
            written[column] = before
            continue
        own = bool(before) and not _same(column, before, base.get(column, ""))
        state = merge.state(before, own=own)
        if after:
            change = CellChange(node=name, column=HEADINGS[column], before=before, after=after, state=state)
            merge.changes.append(change)
        if after and state is not CellState.KEPT:
            merge.by_hand = merge.by_hand or own
            merge.draft.put(line, column, after, HEADINGS[column])
            written[column] = after
        elif column in base:  # the operator's entry stays, also where the source knows nothing
            written[column] = base[column]
    merge.written[row.id] = written


def _same(column: str, one: str, other: str) -> bool:
    return _plain(column, one) == _plain(column, other)


def _plain(column: str, cell: str) -> str:
    """Return a cell in the one spelling that cells of its column are compared in."""
    text = cell.strip().casefold()
    try:
        if column in ("bmc", "address") and text:
            return str(ip_address(text))
        if column in ("bmc_mac", "boot_mac") and text:
            return read_mac(text)
    except ValueError:
        return text
    return text.removeprefix("u") if column == "unit" else text


_UNIQUE = ("name", "bmc", "serial", "boot_mac")


def _collisions(merge: _Merge, rows: Sequence[SourceRow]) -> dict[str, str]:
    """Return the machines of the source that share a unique value with another line, and which value it is."""
    found: dict[str, str] = {}
    names = {merge.names[row.id]: row.name for row in rows}
    for column, values in _values(merge.draft):
        times = Counter(values.values())
        for line, value in values.items():
            name = merge.draft.cell(merge.draft.rows[line], "name").lower()
            if times[value] > 1 and name in names:
                found[names[name]] = f"its {column} {value} stands in another line of the sheet"
    return found


def _values(draft: SheetDraft) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield each unique column with its values by line; rack and unit are one."""
    for column in _UNIQUE:
        cells = {at: draft.cell(row, column).lower() for at, row in enumerate(draft.rows)}
        yield HEADINGS[column], {at: cell for at, cell in cells.items() if cell}
    places = {
        at: f"{draft.cell(row, 'rack')} U{draft.cell(row, 'unit')}".lower()
        for at, row in enumerate(draft.rows)
        if draft.cell(row, "rack") and draft.cell(row, "unit")
    }
    yield "rack unit", places
