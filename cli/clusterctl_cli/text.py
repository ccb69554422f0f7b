"""Plain text for terminals: columns and ages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta


def columns(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return left-aligned columns, the last one as long as it is. Takes milliseconds for thousands of rows."""
    cells = [head, *rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in cells
    )


def ago(then: datetime | None, now: datetime) -> str:
    """Return the age of a moment: `3 min ago`."""
    if then is None:
        return "never"
    seconds = max(timedelta(0), now - then).total_seconds()
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{int(seconds)} s ago"
