"""docs/reference/bmc-operations.md: each operation × each make of BMC, from a run. Each cell is compared with the page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from clusterctl.ports import BmcAddress
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.operations_kit import MODELS, OPERATIONS, SWEEP, Target, emulated, recorded, tried
from tests.edges.redfish.sushy_kit import SERIAL, Sushy, shelf
from tests.paths import ROOT

PAGE = ROOT / "docs/reference/bmc-operations.md"
PREFACE = """# What can be done through which BMC

Written by `make operations-table`: each operation of the client, tried on each BMC that there is to try it on, and seen.
`tests/edges/redfish/test_operations_table.py` holds every cell against this page at each run (that of the recordings where they are
at hand). No real BMC is among them.

- `lab`: the lab's emulated BMCs of four vendors; written from recordings and published trees.
- `recorded`: trees recorded from a Dell R750, an HPE DL385 and a Supermicro 821GE, in [replay](../how-to/lab.md#replay). A replay takes
  power, boot override and sessions; media and AC cycles it refuses, whatever the real one would do.
- `sushy-tools`: the emulator of OpenStack's, with a fake machine that was given a serial.

**done**: asked for, and seen to be so; power from the other state, eject of what was in. **done, in part**: what is missing is
inconclusive. **not offered**: the client has looked and asked for nothing. **error**: asked for or needed, and not there.
The messages of each are below the table. What quirks make of it: [BMC quirks](bmc-quirks.md).
"""
NAMES = [
    *(f"lab: {vendor.value}" for vendor in Vendor),
    *(f"recorded: {vendor} {model}" for vendor, model in MODELS.items()),
    "sushy-tools",
]
ROWS = (SWEEP, *OPERATIONS)
UNTRIED = "not tried"
"""The text of a new operation until each BMC was there to try it on."""
Cells = Mapping[str, Mapping[str, str]]
"""By BMC and operation."""


def render(found: Cells) -> str:
    """The page: a word a cell, and below the table the sentences."""
    names = [name for name in NAMES if name in found]
    head = f"\n| | {' | '.join(names)} |\n|---{'|---' * len(names)}|\n"
    rows = "".join(f"| {row} | {' | '.join(word(found[name].get(row, UNTRIED)) for name in names)} |\n" for row in ROWS)
    return PREFACE + head + rows + "".join(_notes(name, found[name]) for name in names)


def word(cell: str) -> str:
    return "done, in part" if cell.startswith("done; ") else cell.partition(": ")[0]


def _notes(name: str, cells: Mapping[str, str]) -> str:
    reported = "".join(f"- {row}: {cells[row]}\n" for row in ROWS if cells.get(row, "done") != "done")
    return f"\n## {name}\n\n{reported}" if reported else ""


def parse(page: str) -> Cells:
    """What `render` was given."""
    table, *sections = page.partition("\n| | ")[2].split("\n## ")
    header, _, *lines = table.strip().splitlines()
    names = [name.strip() for name in header.strip("| ").split("|")]
    split = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    cells = {name: {row[0]: row[column] for row in split} for column, name in enumerate(names, 1)}
    for section in sections:
        name, _, notes = section.partition("\n")
        for note in notes.strip().splitlines():
            row = next(row for row in sorted(ROWS, key=len, reverse=True) if note.startswith(f"- {row}: "))
            cells[name][row] = note.removeprefix(f"- {row}: ")
    return cells


def hold(found: Cells) -> None:
    """The page has this of these BMCs; where CLUSTERCTL_WRITE_PAGES is set, it is written."""
    page = parse(PAGE.read_text()) if PAGE.exists() else {}
    if os.environ.get("CLUSTERCTL_WRITE_PAGES"):
        PAGE.write_text(render({**page, **found}))
        return
    for name, cells in found.items():
        assert cells == page[name], f"{name}: make operations-table writes the page"


pages_here = pytest.mark.skipif(not PAGE.parent.exists(), reason="an installed wheel has no docs")


@pages_here
def test_the_labs_bmcs(tmp_path: Path) -> None:
    """Of every vendor."""
    with emulated(tmp_path) as targets:
        found = tried(targets, tmp_path)
    assert all(
        cells[row] == "done" for cells in found.values() for row in (SWEEP, "identity", "power: on", "power: off")
    )
    hold(found)


@pages_here
def test_the_recorded_bmcs(tmp_path: Path) -> None:
    """In replay."""
    with recorded(tmp_path) as targets:
        hold(tried(targets, tmp_path))


@pages_here
def test_sushy_tools(tmp_path: Path, sushy_tools: tuple[Sushy, BmcAddress]) -> None:
    """Which neither of us wrote."""
    sushy_tools[0].reset()
    with shelf() as image:
        hold(tried([Target("sushy-tools", sushy_tools[1], SERIAL, image)], tmp_path))


@pages_here
def test_the_page_is_whole() -> None:
    """Every BMC and every operation has its cell, and nothing else stands there."""
    output = parse(PAGE.read_text())
    assert list(output) == NAMES
    assert all(set(cells) == set(ROWS) and UNTRIED not in cells.values() for cells in output.values())
    assert PAGE.read_text() == render(output)
