"""The entries of one node in the site's files: its name, place and addresses, changed in all of them together.

The node's line of the sheet, its lines of the sheet of addresses, and its ends in the wiring plans. Each file is
written whole or not at all; cells that do not concern the node stay as they are.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.site.load import Site
from clusterctl.edges.site.sheet import sheet_rows
from clusterctl.edges.site.sheet_import import HEADINGS, content_digest
from clusterctl.edges.site.sheet_update import SheetDraft
from clusterctl.edges.site.textfile import MAX_PLAN_BYTES, decoded, read_bytes, read_text
from clusterctl.fleet.csv_text import csv_text
from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.formats.site.table import read_table
from clusterctl.formats.wiring.csv_plan import REQUIRED
from clusterctl.formats.wiring.plan import decode_draft
from clusterctl.site.nodes import SiteNode

_CELLS: Mapping[str, Callable[[SiteNode], str]] = {
    "name": lambda node: node.name,
    "bmc": lambda node: node.bmc,
    "serial": lambda node: node.serial,
    "rack": lambda node: node.rack,
    "unit": lambda node: "" if node.unit is None else str(node.unit),
    "bmc_mac": lambda node: node.bmc_mac or "",
    "boot_mac": lambda node: node.boot_mac or "",
    "address": lambda node: node.address,
}
"""The fields of a node that a relocation may change, and their cells."""
_ENDS = ("source", "destination")


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file as it would be written. `before`: the SHA-256 of its content when it was read."""

    file: Path
    text: str
    before: str
    changes: tuple[str, ...]

    def require_unchanged(self) -> None:
        """Raise `ConflictError` where the file was changed since it was read."""
        if content_digest(self.file) != self.before:
            remedy = "run the same command again: it reads the file again"
            raise ConflictError("was changed while this command ran", where=str(self.file), remedy=remedy)

    def write(self) -> None:
        """Write the file whole or not at all, with the mode that it has; where it is a link, its target."""
        with disk_explained("cannot be written", self.file):
            mode = stat.S_IMODE(self.file.stat().st_mode) & 0o666
            write_whole(self.file.resolve(), self.text.encode(), mode=mode, over=True)


@dataclass(frozen=True, slots=True)
class PlaceEdits:
    """The files that change, and the places that an operator has to change by hand."""

    files: tuple[FileEdit, ...]
    by_hand: tuple[str, ...]


def place_edits(site: Site, old: SiteNode, new: SiteNode, former: str) -> PlaceEdits:
    """Return the edits that turn `old`, as the site has it, into `new`. `former`: the node's name until now.

    A file that has the change already is not among them. Raises `UsageError` where the node is in no sheet, and
    site.yml itself would have to change.
    """
    files = [*_sheet_edit(site, old, new)]
    by_hand: list[str] = []
    if former != new.name:
        files += _address_edit(site, former, new.name)
        by_hand += _site_file_mentions(site, former)
    for name in filter(None, (site.settings.fabric.plan, site.settings.fabric.ethernet)):
        files += _plan_edit(Path(site.path(name)), former, new, by_hand)
    return PlaceEdits(tuple(files), tuple(by_hand))


def _sheet_edit(site: Site, old: SiteNode, new: SiteNode) -> Iterator[FileEdit]:
    fields = [name for name, cell in _CELLS.items() if cell(old) != cell(new)]
    if not fields:
        return
    sheet = Path(site.path(site.settings.nodes.csv or ""))
    row = _row_of(sheet, old.name) if site.settings.nodes.csv else None
    if row is None:
        changed = ", ".join(f"{HEADINGS[name]} {_CELLS[name](new) or 'empty'}" for name in fields)
        remedy = f"write there: {changed}; then run the same command again"
        raise UsageError("it is not in the sheet of nodes, and only that is written", where=old.where, remedy=remedy)
    digest, draft = content_digest(sheet), SheetDraft.read(sheet)
    shown = []
    for name in fields:
        before, after = _CELLS[name](old) or "empty", _CELLS[name](new)
        draft.put(draft.rows[row], name, after, HEADINGS[name])
        shown.append(f"{HEADINGS[name]} {before} → {after or 'empty'}")
    yield FileEdit(sheet, draft.text(), digest, tuple(shown))


def _row_of(sheet: Path, name: str) -> int | None:
    rows = sheet_rows(read_text(sheet), sheet)
    return next((at for at, row in enumerate(rows) if row.name == name), None)


def _address_edit(site: Site, former: str, name: str) -> Iterator[FileEdit]:
    """Yield the sheet of addresses with the node's new name."""
    if not site.settings.network.addresses:
        return
    file = Path(site.path(site.settings.network.addresses))
    digest, table = content_digest(file), read_table(read_text(file), str(file))
    at = [heading.lower() for heading in table.headings].index("node")
    rows = [cells for _, cells in table.rows]
    mine = [cells for cells in rows if at < len(cells) and cells[at].strip().lower() == former]
    for cells in mine:
        cells[at] = name
    if mine:
        yield FileEdit(file, csv_text([table.headings, *rows]), digest, (f"{former} → {name}, lines: {len(mine)}",))


def _site_file_mentions(site: Site, former: str) -> Iterator[str]:
    """Yield the lines of site.yml that name the node."""
    word = re.compile(rf"(?<![\w.-]){re.escape(former)}(?![\w-]|\.\w)")
    file = site.folder / "site.yml"
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        if word.search(line.partition(" #")[0]):
            yield f"{file}:{number} names {former}: change it by hand"


def _plan_edit(file: Path, former: str, new: SiteNode, by_hand: list[str]) -> Iterator[FileEdit]:
    """Yield a wiring plan with the node's new name and place. One that is no `wiring.csv` is for an operator."""
    if not file.is_file():
        return
    digest, data = content_digest(file), read_bytes(file, max_bytes=MAX_PLAN_BYTES)
    if not file.name.endswith(".csv") or not set(REQUIRED) <= set(_headings(data)):
        cables = _named_in(data, file, former)
        if cables:
            place = f"{new.name}, {new.rack} U{new.unit}" if new.rack else new.name
            by_hand.append(f"{file} is not changed, cables of {former} in it: {cables}; change them by hand ({place})")
        return
    table = read_table(decoded(data, file), str(file))
    rows = [[*cells] for _, cells in table.rows]
    columns = {heading: at for at, heading in enumerate(table.headings)}
    changed = sum([_place_cable(cells, columns, former, new) for cells in rows])
    if changed:
        what = former if former == new.name else f"{former} → {new.name}"
        yield FileEdit(file, csv_text([table.headings, *rows]), digest, (f"{what}, lines: {changed}",))


def _headings(data: bytes) -> list[str]:
    first = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    return first.decode("utf-8", "replace").strip().split(",")


def _named_in(data: bytes, file: Path, name: str) -> int:
    """Return how many cables of a plan end at the node; 0 where the plan cannot be read."""
    try:
        draft = decode_draft(data, file=str(file))
    except UsageError:
        return 0
    return sum(name in {end.device for end in cable.ends} for cable in draft.cables)


def _place_cable(cells: list[str], columns: Mapping[str, int], former: str, new: SiteNode) -> bool:
    """Change the ends of one cable that are the node's; return whether anything changed."""
    changed = False
    for end in _ENDS:
        at = columns[f"{end}_device"]
        if at >= len(cells) or cells[at].strip() not in (former, new.name):
            continue
        wanted = {f"{end}_device": new.name}
        if new.rack:
            unit = _CELLS["unit"](new)
            wanted |= {f"{end}_rack": new.rack, f"{end}_unit": unit, "rack": new.rack, "unit": unit}
        for heading, value in wanted.items():
            place = columns.get(heading, len(cells))
            if place < len(cells) and _plain(cells[place]) != _plain(value):
                cells[place], changed = value, True
    return changed


def _plain(cell: str) -> str:
    return cell.strip().upper().removeprefix("U")
