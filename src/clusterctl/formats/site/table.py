"""CSV as spreadsheets export it, row by row with its line; errors name the kind of text that is no such CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.csv_text import unguarded
from clusterctl.fleet.errors import UsageError

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_SECRET = re.compile(r"passw|pwd", re.IGNORECASE)
_EXPORT = "export it again as plain CSV, separated by commas"


@dataclass(frozen=True, slots=True)
class Table:
    """The headings as written, less blanks around them, and the rows that are not blank: (line, cells)."""

    headings: tuple[str, ...]
    rows: Iterator[tuple[int, list[str]]]


def read_table(text: str, file: str) -> Table:
    """Return the table. Raises `UsageError` with file and line, at once or while rows are read."""
    rows = _rows(text, file)
    _, header = next(rows, (1, []))
    headings = tuple(unguarded(cell.strip()) for cell in header)
    if not headings:
        raise UsageError("is empty", where=f"{file}:1", remedy="name the columns in its first line")
    if len(headings) == 1:
        for sign, name in _SEPARATORS.items():
            if sign in headings[0]:
                raise UsageError(f"its columns are separated by {name}", where=f"{file}:1", remedy=_EXPORT)
    secret = secret_columns(headings)
    return Table(headings, ((line, _plain(cells, secret)) for line, cells in rows))


def secret_columns(headings: Sequence[str]) -> tuple[int, ...]:
    """Return the columns that hold passwords: a password is read and written letter by letter."""
    return tuple(at for at, heading in enumerate(headings) if _SECRET.search(heading))


def _plain(cells: list[str], secret: tuple[int, ...]) -> list[str]:
    return [cell if at in secret else unguarded(cell) for at, cell in enumerate(cells)]


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, cells
    except csv.Error as error:
        where = f"{file}:{reader.line_num}"
        raise UsageError(f"is no CSV: {csv_problem(error)}", where=where, remedy=_EXPORT) from None


def csv_problem(error: csv.Error) -> str:
    """Return what is wrong with a CSV in plain words."""
    text = str(error)
    if "unexpected end" in text:
        return "a quotation mark is opened and never closed"
    if "field limit" in text or "field larger" in text:
        return "a cell holds more than 128 KiB; is a quotation mark never closed?"
    if "expected after" in text:
        return "a cell goes on behind its closing quotation mark"
    return text
