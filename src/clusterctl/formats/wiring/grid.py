"""Rows of a spreadsheet: CSV in any of its dialects, or the sheets of an Excel workbook.

CSV: separated by commas, semicolons, tabs or bars, with or without Excel's line `sep=;`, in UTF-8, UTF-16 or
Windows-1252. Workbooks: values as Excel last calculated them; a merged cell has its value in all of its cells; hidden
rows are read too, and noted.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from itertools import islice
from typing import TYPE_CHECKING, Any

from clusterctl.fleet.csv_text import unguarded
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.file_text import MAX_BYTES, text_in, unpacked
from clusterctl.formats.site.table import csv_problem
from clusterctl.formats.wiring.columns import HEAD_ROWS

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange
    from openpyxl.worksheet.worksheet import Worksheet

_ZIP, _OLD_EXCEL, _GZIP = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x1f\x8b"
_SEPARATORS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n?$', re.IGNORECASE)
_SAMPLE = 30
_HEAD = HEAD_ROWS + 1
_MOST_CELLS = 4_000_000
DATE = "\0date"
"""The value of a cell that holds a date: a spreadsheet makes one of a port such as `5/2`."""


Row = tuple[int, tuple[str, ...]]
"""A row that is not blank: its line, and its cells without blanks around them."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The rows of a sheet: the first ones, and the `rest`, which can be read once and raises like `text_grid`.

    `head` holds the rows of the header, and one more; `label` names the file, and the sheet of a workbook.
    """

    label: str
    sheet: str
    head: tuple[Row, ...]
    rest: Iterable[Row]
    notes: tuple[str, ...] = ()


def is_workbook(data: bytes) -> bool:
    """Return whether the bytes are those of a workbook, old or new."""
    return data.startswith((_ZIP, _OLD_EXCEL))


def text_grid(text: str, file: str) -> Grid:
    """Return the rows of a CSV. Raises UsageError with the line where it is none."""
    first, _, rest = text.partition("\n")
    match = _SEPARATOR_LINE.match(first.strip())
    skipped = 1 if match else 0
    separator = match[1] if match else _separator(text)
    rows = _csv_rows(rest if match else text, separator, file, skipped)
    return Grid(file, "", tuple(islice(rows, _HEAD)), rows)


def file_text(data: bytes, file: str) -> str:
    """Return the text of a CSV: UTF-8, UTF-16, else Windows-1252."""
    return text_in(data, file, fallback="cp1252")


def workbook_grids(data: bytes, file: str) -> tuple[Grid, ...]:
    """Return the sheets of a workbook that have rows and are not hidden. Raises UsageError where it is none."""
    import openpyxl  # noqa: PLC0415 - only workbooks need it, and it takes 0.3 s to load

    if data.startswith(_GZIP):
        data = unpacked(data, file, MAX_BYTES)
    if data.startswith(_OLD_EXCEL):
        raise UsageError("is an old or encrypted Excel file", where=file, remedy="save it as .xlsx without a password")
    _check_archive(data, file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # styles and validations that openpyxl does not know
            book = openpyxl.load_workbook(io.BytesIO(data), data_only=True)
    except Exception as error:
        message = f"is no Excel workbook that can be read: {type(error).__name__}"
        raise UsageError(message, where=file, remedy="save it again as .xlsx, or export it as CSV") from error
    return tuple(_grid(sheet, file) for sheet in book.worksheets if sheet.sheet_state == "visible")


def _check_archive(data: bytes, file: str) -> None:
    import zipfile  # noqa: PLC0415 - only workbooks need it

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError) as error:
        raise UsageError(f"is a damaged workbook: {error}", where=file, remedy="save it again as .xlsx") from error
    if size > MAX_BYTES:
        raise UsageError("is too large when unpacked", where=file, remedy="give the plan and no more")
    if "xl/workbook.xml" not in names:
        raise UsageError("is an archive, but no Excel workbook", where=file, remedy="save it as .xlsx or CSV")


def _grid(sheet: Worksheet, file: str) -> Grid:
    label = f"{file} (sheet {sheet.title})"
    if sheet.max_row * sheet.max_column > _MOST_CELLS:
        raise UsageError(
            f"has {sheet.max_row} rows of {sheet.max_column} cells", where=label, remedy="cut the sheet to the plan"
        )
    values = [[_text(cell.value) for cell in row] for row in sheet.iter_rows()]
    for area in sheet.merged_cells.ranges:
        _fill(values, area)
    hidden = sum(bool(shape.hidden) and any(values[number - 1]) for number, shape in _shapes(sheet, len(values)))
    rows = tuple((number, tuple(cells)) for number, cells in enumerate(values, start=1) if any(cells))
    notes = (f"{label}: {hidden} hidden rows are read too",) if hidden else ()
    return Grid(label, sheet.title, rows[:_HEAD], rows[_HEAD:], notes)


def _fill(values: list[list[str]], area: CellRange) -> None:
    """Give all cells of a merged area the value of its first cell."""
    columns = slice(area.min_col - 1, area.max_col)
    rows = values[area.min_row - 1 : area.max_row]
    first = rows[0][columns][:1] if rows else []
    for row in rows:
        row[columns] = first * len(row[columns])


def _shapes(sheet: Worksheet, rows: int) -> Iterator[tuple[int, Any]]:
    return ((number, shape) for number, shape in sheet.row_dimensions.items() if 1 <= number <= rows)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, date | datetime | time):
        return DATE
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _separator(text: str) -> str:
    """Return the sign that splits most of the first lines into the same number of cells, more than one."""
    lines = [line for line in text.splitlines()[: _SAMPLE * 2] if line.strip()][:_SAMPLE]
    best, most = ",", (0, 0)
    for sign in _SEPARATORS:
        counts = [_cells(line, sign) for line in lines]
        usual = max(set(counts), key=counts.count, default=1)
        score = (counts.count(usual), usual) if usual > 1 else (0, 0)
        if score > most:
            best, most = sign, score
    return best


def _cells(line: str, sign: str) -> int:
    """Return the number of cells of a line; 0 for what is no CSV: the reader of the whole names it."""
    try:
        return len(next(csv.reader([line], delimiter=sign), []))
    except csv.Error:
        return 0


def _csv_rows(text: str, separator: str, file: str, skipped: int) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text.replace("\0", ""), newline=""), strict=True, delimiter=separator)
    guards = "'" in text
    try:
        for cells in reader:
            row = tuple(map(str.strip, cells))
            if guards:
                row = tuple(map(unguarded, row))
            if any(row):
                yield reader.line_num + skipped, row
    except csv.Error as error:
        where = f"{file}:{reader.line_num + skipped}"
        remedy = "export it again as plain CSV"
        raise UsageError(f"is no CSV: {csv_problem(error)}", where=where, remedy=remedy) from None
