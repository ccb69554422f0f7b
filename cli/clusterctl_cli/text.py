"""Plain text for terminals: the one way out for it, columns and ages."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

import click

from clusterctl.fleet.peer_text import visible, visible_line

WIDEST = 100
"""Columns of a sentence on a terminal that has more."""
NARROW = 36
"""A last column that has less room than this is printed below its row."""


def terminal_width() -> int | None:
    """Return the width of the terminal; None where stdout is none: a pipe gets one line per row."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrapped(text: str, width: int | None, indent: int = 4) -> str:
    """Return a line for a terminal of this width, which breaks no word; None: as it is. At most 100 columns wide."""
    if width is None:
        return text
    return textwrap.fill(
        text,
        min(width, WIDEST),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], *, width: int | None = None) -> str:
    """Return left-aligned columns. Takes milliseconds for thousands of rows.

    The last column is as long as it is; with `width` it is wrapped, or printed below its row where little room is left.
    """
    cells = [head, *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head) - 1)]
    left = sum(widths) + 2 * len(widths)
    lines: list[str] = []
    padded = "".join(f"%-{size}s  " for size in widths)
    for row in cells:
        start = padded % tuple(row[: len(widths)])
        lines += _lines(start, row[-1], left, width) if width and len(row[-1]) > width - left else [start + row[-1]]
    return "\n".join(line.rstrip() for line in lines)


def _lines(start: str, last: str, left: int, width: int) -> Iterator[str]:
    """Yield a row with a last cell that does not fit behind the others."""
    if width - left >= NARROW:
        first, *others = textwrap.wrap(last, width - left)
        yield start + first
        yield from (" " * left + other for other in others)
        return
    yield start
    yield from textwrap.wrap(last, width, initial_indent="    ", subsequent_indent="    ")


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text. What a terminal would act on is visible in it: machines, files and journals may hold any text."""
    click.echo(visible(text), err=err, nl=nl)


def echo_rendered(text: str) -> None:
    """Print what a `VisibleConsole` has rendered: its colours are ours, and all else in it is visible already."""
    click.echo(text)


def markdown(document: str) -> str:
    """Return a document of ours as Markdown in which no text of a machine is HTML, a link, a picture, or a heading or
    list of its own.

    Indented lines are raw output: a viewer shows them as they are. Ours has no link.
    """
    lines = visible(document).split("\n")
    return "\n".join(
        line if line.startswith("    ") and not line.lstrip().startswith("- ") else _inert(line) for line in lines
    )


def paragraph(text: str) -> str:
    """Return a text of a machine that begins a line of Markdown: no heading, list, quotation or fence."""
    text = text.lstrip()
    mark = _MARK.match(text)
    if mark is None:
        return text
    at = mark.end() if mark[0].isdigit() else 0
    return f"{text[:at]}\\{text[at:]}"


_MARK = re.compile(r"[0-9]{1,9}(?=[.)])|[#>=~`]|[-+*](?!\*)")
_BULLET = re.compile(r" *- (?:\[ \] )?")
_BRACKET = re.compile(r"(?<!\\)(?P<pairs>(?:\\\\)*)\[")
"""A bracket that no backslash escapes: links, pictures and definitions all begin with one."""


def _inert(line: str) -> str:
    bullet = _BULLET.match(line)
    begin = bullet.end() if bullet else 0
    rest = _BRACKET.sub(r"\g<pairs>\\[", line[begin:].replace("<", "&lt;")).replace("](", "]\\(")
    return line[:begin] + (paragraph(rest) if bullet else rest)


def one_line(text: str) -> str:
    """Return a text as one line, in which nothing is hidden: machines may report any text."""
    return visible_line(text)


def brief(text: str, length: int = 90) -> str:
    """Return a text that fits into a row with other columns."""
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"


def ago(then: datetime | None, now: datetime) -> str:
    """Return the age of a moment: `3 min ago`."""
    if then is None:
        return "never"
    seconds = max(timedelta(0), now - then).total_seconds()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"


def duration(seconds: float) -> str:
    """Return a duration as a clock shows it: `0:42`, `12:07`, `1:03:20`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
