"""Wiring plans as people have them → WiringPlan: `wiring.csv`, spreadsheets and workbooks of other
kinds, ibtopodiff's `.topo`, UFM's `.ndt`; gzipped or not.

A draft holds a plan with its contradictions, for `cable lint`; a plan has none.
"""

from __future__ import annotations

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
    """As `decode_plan`, contradictions kept. The content decides the kind, then the file's name.

    `sheet` is the sheet of a workbook; without it the only one that fits.
    """
    if is_workbook(data):
        return read_wiring_grid(_sheet(workbook_grids(data, file), file, sheet))
    text = file_text(data, file)
    name = file.lower().removesuffix(".gz")
    if name.endswith(".topo"):
        return read_topo(text, file)
    lines = list(islice((line.strip() for line in text.splitlines() if line.strip()), _FIRST_LINES))
    if name.endswith(".ndt") or (lines and is_ndt(lines[0])):
        return read_ndt(text, file)
    if not name.endswith(".csv") and any(CABLE.match(line) for line in lines):
        return read_topo(text, file)
    return read_wiring_csv(text, file)


def _sheet(grids: tuple[Grid, ...], file: str, wanted: str) -> Grid:
    names = ", ".join(grid.sheet for grid in grids) or "none"
    if wanted:
        found = [grid for grid in grids if grid.sheet.casefold() == wanted.casefold()]
        if not found:
            message = f"has no visible sheet {wanted!r}; sheets: {names}"
            raise UsageError(message, where=file, remedy="name one of them by --sheet")
        return found[0]
    fitting = [grid for grid in grids if fits(grid)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        several = ", ".join(grid.sheet for grid in fitting)
        raise UsageError(f"several sheets fit: {several}", where=file, remedy="name one of them by --sheet")
    if len(grids) == 1:
        return grids[0]
    message = f"no sheet has columns for the devices and ports of both ends; sheets: {names}"
    raise UsageError(
        message, where=file, remedy="name the columns source_device, source_port, destination_device, destination_port"
    )


def parse_wiring_csv(text: str, *, file: str = "wiring.csv") -> WiringPlan:
    """Raises UsageError that names file, line and column."""
    return settle(read_wiring_csv(text, file))


def parse_topo(text: str, *, file: str = "plan.topo") -> WiringPlan:
    """Raises UsageError that names file and line."""
    return settle(read_topo(text, file))
