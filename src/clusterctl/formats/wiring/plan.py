"""Wiring plans of all supported kinds → WiringPlan: `wiring.csv`, foreign spreadsheets and workbooks, ibtopodiff's
`.topo`, UFM's `.ndt`; gzipped or not.

A draft holds a plan with its contradictions, for `cable lint`; a plan has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import PlanDraft, WiringPlan, settle
from clusterctl.formats.wiring.csv_plan import fits, read_wiring_csv, read_wiring_grid
from clusterctl.formats.wiring.grid import Grid, file_text, is_workbook, workbook_grids
from clusterctl.formats.wiring.ndt import is_ndt, read_ndt
from clusterctl.formats.wiring.topo import CABLE, read_topo

_FIRST_LINES = 50


def decode_plan(data: bytes, *, file: str) -> WiringPlan:
    """Return the plan in a file's bytes. Raises UsageError with file and line, also where it contradicts itself."""
    return settle(decode_draft(data, file=file))


def decode_draft(data: bytes, *, file: str, sheet: str = "") -> PlanDraft:
    """Return the plan in a file's bytes, with its contradictions. Content and file name decide the kind.

    `sheet` is the sheet of a workbook; without it the only one that fits. Raises UsageError with file and line.
    """
    if is_workbook(data):
        return read_wiring_grid(_sheet(workbook_grids(data, file), file, sheet))
    text = file_text(data, file)
    return _reader_of(text, file.lower().removesuffix(".gz"))(text, file)


def _reader_of(text: str, name: str) -> Callable[[str, str], PlanDraft]:
    """Return the reader for a text, by the ending of the file's name and by its first lines."""
    if name.endswith(".topo"):
        return read_topo
    lines = list(islice(filter(None, map(str.strip, text.splitlines())), _FIRST_LINES))
    if name.endswith(".ndt") or (lines and is_ndt(lines[0])):
        return read_ndt
    is_topo = not name.endswith(".csv") and any(map(CABLE.match, lines))
    return read_topo if is_topo else read_wiring_csv


def _sheet(grids: tuple[Grid, ...], file: str, wanted: str) -> Grid:
    """Return the wanted sheet, else the only one that fits, else the only one."""
    if wanted:
        return _named_sheet(grids, file, wanted)
    fitting = [grid for grid in grids if fits(grid)]
    if len(fitting) > 1:
        message = f"several sheets fit: {_names(fitting)}"
        raise UsageError(message, where=file, remedy="name one of them by --sheet")
    found = fitting or grids
    if len(found) != 1:
        message = f"no sheet has columns for the devices and ports of both ends; sheets: {_names(grids)}"
        columns = "source_device, source_port, destination_device, destination_port"
        raise UsageError(message, where=file, remedy=f"name the columns {columns}")
    return found[0]


def _named_sheet(grids: tuple[Grid, ...], file: str, wanted: str) -> Grid:
    found = next((grid for grid in grids if grid.sheet.casefold() == wanted.casefold()), None)
    if found is None:
        message = f"has no visible sheet {wanted!r}; sheets: {_names(grids)}"
        raise UsageError(message, where=file, remedy="name one of them by --sheet")
    return found


def _names(grids: Sequence[Grid]) -> str:
    return ", ".join(grid.sheet for grid in grids) or "none"


def parse_wiring_csv(text: str, *, file: str = "wiring.csv") -> WiringPlan:
    """Return the plan of a wiring.csv. Raises UsageError with file, line and column."""
    return settle(read_wiring_csv(text, file))


def parse_topo(text: str, *, file: str = "plan.topo") -> WiringPlan:
    """Return the plan of a `.topo` file. Raises UsageError with file and line."""
    return settle(read_topo(text, file))
