"""CSV that clusterctl writes: no cell is a formula, and what is read back is what was written."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clusterctl.fleet.csv_text import csv_text, guarded, unguarded
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.formats.site.table import read_table
from clusterctl.formats.wiring.csv_plan import wiring_csv
from clusterctl.formats.wiring.plan import parse_wiring_csv
from tests.paths import ROOT, needs_checkout

CELLS = st.text(alphabet="=+-@\t\r\n;,'\" \uff1da1.", max_size=12) | st.text(max_size=12)
FORMULA = re.compile(r"[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")
NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
EVIL = "=cmd|'/c calc'!A0"


def cells_as(separator: str, text: str) -> list[str]:
    """Cells as a spreadsheet with this separator makes them of one written row."""
    return [cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row]


@given(st.lists(CELLS, min_size=1, max_size=4))
@example(["a;=1+1", "\t=1", "\r\n@SUM(1)", "'=1", "''-1", "-5", "+4.5"])
def test_no_cell_is_a_formula_whatever_the_separator(cells: list[str]) -> None:
    """Neither the cells, nor those that a spreadsheet with semicolons or tabulators makes of the line."""
    written = csv_text([cells])

    for separator in ",;\t":
        for cell in cells_as(separator, written):
            assert FORMULA.match(cell) is None or NUMBER.fullmatch(cell) or cell.strip("\r\n") == ""


@given(CELLS)
def test_what_was_guarded_is_read_as_it_was(cell: str) -> None:
    """Also a cell that begins with apostrophes itself."""
    assert unguarded(guarded(cell)) == cell


@pytest.mark.parametrize("cell", ["", "node001", "-5", "+4.5", "it's", "'quoted'", "a-b=c", "10.0.0.1"])
def test_harmless_cells_stay(cell: str) -> None:
    """Names, addresses and plain numbers are written as they are."""
    assert guarded(cell) == cell


@pytest.mark.parametrize("heading", ["bmc_password", "Factory Password", "pwd"])
def test_a_password_is_read_letter_by_letter(heading: str) -> None:
    """A password may begin with an apostrophe and a sign; another column may not."""
    table = read_table(f"name,{heading}\n'=n,'=secret\n", "bmcs.csv")

    assert [cells for _, cells in table.rows] == [["=n", "'=secret"]]
    assert csv_text([["=n", "=secret"]], verbatim=(1,)) == "'=n,=secret\n"


def test_a_wiring_plan_with_hostile_names_is_read_back_as_it_was() -> None:
    """Plan, written and read: the same ends, and no cell of it is a formula."""
    plan = WiringPlan(
        hosts=frozenset({"=host"}),
        cables=(PlannedCable(PortName("=host", "+p1"), PortName("@leaf", "-x"), serial=EVIL),),
    )
    written = wiring_csv(plan)
    (cable,) = parse_wiring_csv(written).cables

    assert not [cell for cell in cells_as(",", written) if FORMULA.match(cell)]
    assert (cable.source, cable.destination, cable.serial) == (
        PortName("=host", "+p1"),
        PortName("@leaf", "-x"),
        EVIL,
    )


@needs_checkout
def test_one_place_writes_csv() -> None:
    """No other module of the product has a writer of its own; ibdiagnet's is for comparing lines and writes no file."""
    writers = {
        path.relative_to(ROOT).as_posix()
        for top in ("src", "cli", "burnin")
        for path in Path(ROOT / top).rglob("*.py")
        if re.search(r"csv\.(writer|DictWriter)", path.read_text())
    }

    assert writers == {"src/clusterctl/fleet/csv_text.py", "src/clusterctl/formats/infiniband/ibdiagnet.py"}
