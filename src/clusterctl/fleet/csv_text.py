"""CSV as clusterctl writes it. No cell is a formula to a spreadsheet (OWASP, CSV injection), and the reader of such a
file gets the cells as they were.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence

_BEGINS_CELL = r"(?:^|(?<=[;\t\r\n]))"
"""A spreadsheet that expects another separator begins a cell at a semicolon or tabulator, even between quotes."""
_FORMULA = r"(?='*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20])"
_UNGUARDED = re.compile(_BEGINS_CELL + _FORMULA)
_GUARDED = re.compile(f"{_BEGINS_CELL}'{_FORMULA}")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def csv_text(rows: Iterable[Iterable[object]], verbatim: Sequence[int] = ()) -> str:
    """Return the rows as CSV, each cell guarded except in the columns `verbatim`; None is an empty cell."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for row in rows:
        cells = ("" if cell is None else str(cell) for cell in row)
        writer.writerow([cell if at in verbatim else guarded(cell) for at, cell in enumerate(cells)])
    return text.getvalue()


def guarded(cell: str) -> str:
    """Return the cell with an apostrophe before what a spreadsheet would calculate; a plain number stays."""
    return cell if _NUMBER.fullmatch(cell) else _UNGUARDED.sub("'", cell)


def unguarded(cell: str) -> str:
    """Return the cell that `guarded` was given."""
    return _GUARDED.sub("", cell) if "'" in cell else cell
