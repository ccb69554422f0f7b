"""The sections of ibdiagnet2's `db_csv`: `START_X`, a heading, rows, `END_X`. Columns are found by name.

Rows hold secrets (M_Keys): no message quotes one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.node import Guid

_EDGE = re.compile(r"(START|END)_([A-Z0-9_]+)$")
_PLAIN = re.compile(r"[^a-z0-9]")
_GUID = re.compile(r"0x([0-9a-fA-F]{1,16})$")
_NUMBER = re.compile(r"[0-9]{1,20}$|0x[0-9a-fA-F]{1,16}$")
_ABSENT = frozenset({"", "NA", "N/A", "ERR", "-1"})
REMEDY = "run ibdiagnet again, and give its whole ibdiagnet2.db_csv"


@dataclass(frozen=True, slots=True)
class Row:
    """One row's cells by plain column name (`nodeguid`: lower case, letters and digits only)."""

    cells: Mapping[str, str]
    file: str
    section: str
    line: int

    def error(self, column: str, problem: str) -> ParseError:
        return ParseError(f"{self.section}: {column} {problem}", where=f"{self.file}:{self.line}", remedy=REMEDY)

    def text(self, *columns: str) -> str:
        """The first of the columns that is there and says something; empty where none does."""
        cells = (self.cells.get(column, "").strip().strip('"').strip() for column in columns)
        return next((cell for cell in cells if cell.upper() not in _ABSENT), "")

    def number(self, *columns: str) -> int:
        """A whole number, decimal or 0x…; ParseError where it is none."""
        text = self.text(*columns)
        if not _NUMBER.match(text):
            raise self.error(columns[0], "is no number")
        return int(text, 0) if text.startswith("0x") else int(text)

    def guid(self, *columns: str) -> Guid:
        match = _GUID.match(self.text(*columns))
        if match is None:
            raise self.error(columns[0], "is no GUID")
        return Guid(match[1].lower().zfill(16))


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    line: int

    def has(self, *columns: str) -> bool:
        return all(column in self.columns for column in columns)


def is_db_csv(text: str) -> bool:
    """Whether it looks like one."""
    return any(line.startswith("START_") for line in text.splitlines())


def sections(text: str, file: str) -> dict[str, Section]:
    """All sections by name. Raises ParseError where one is not closed, or a row has not the columns of its heading."""
    found: dict[str, Section] = {}
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        edge = _EDGE.match(line.strip())
        if edge is None:
            continue
        if edge[1] == "END" or edge[2] in found:
            problem = "ends and never began" if edge[1] == "END" else "a second time"
            raise ParseError(f"{edge[2]}: {problem}", where=f"{file}:{number}", remedy=REMEDY)
        found[edge[2]] = _section(edge[2], number, lines, file)
    if not found:
        raise ParseError("no section in it: empty, or no db_csv", where=file, remedy=REMEDY)
    return found


def without_keys(text: str) -> str:
    """The same text with what stands in columns of keys (M_Keys and their like) blanked, fit to be kept."""
    lines: list[str] = []
    secret: frozenset[int] | None = frozenset()
    for line in text.splitlines():
        edge = _EDGE.match(line.strip())
        cells = line.split(",") if '"' not in line else next(csv.reader([line]), [])
        if edge is not None:
            secret = None if edge[1] == "START" else frozenset()
        elif secret is None and line.strip():
            columns = [_PLAIN.sub("", cell.lower()) for cell in cells]
            secret = frozenset(place for place, column in enumerate(columns) if column.endswith("key"))
        elif secret:
            kept = io.StringIO()
            blanked = ["" if place in secret else cell for place, cell in enumerate(cells)]
            csv.writer(kept, lineterminator="").writerow(blanked)
            lines.append(kept.getvalue())
            continue
        lines.append(line)
    return "\n".join(lines) + "\n"


def _section(name: str, start: int, lines: Iterator[tuple[int, str]], file: str) -> Section:
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    for number, line in lines:
        edge = _EDGE.match(line.strip())
        if edge is not None and edge.groups() == ("END", name):
            return Section(name, columns, tuple(rows), start)
        if edge is not None:
            break
        if not line.strip():
            continue
        cells = _cells(line, name, f"{file}:{number}")
        if not columns:
            columns = tuple(_PLAIN.sub("", cell.lower()) for cell in cells)
        elif len(cells) != len(columns):
            message = f"{name}: {len(cells)} cells under {len(columns)} columns"
            raise ParseError(message, where=f"{file}:{number}", remedy=REMEDY)
        else:
            rows.append(Row(dict(zip(columns, cells, strict=True)), file, name, number))
    raise ParseError(f"{name}: it never ends: cut off", where=f"{file}:{start}", remedy=REMEDY)


def _cells(line: str, name: str, where: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except (csv.Error, StopIteration) as error:
        raise ParseError(f"{name}: a row that is no CSV", where=where, remedy=REMEDY) from error
