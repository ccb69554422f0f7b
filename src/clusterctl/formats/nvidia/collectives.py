"""Collectives over GPUs: the table of nccl-tests (`all_reduce_perf` …), and hung groups of the node's torch-group.

Old versions of nccl-tests print a column `error`, new ones `#wrong`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

_ROW = re.compile(
    r"^\s*(?P<size>\d{1,18})\s+(?P<count>\d{1,18})\s+(?P<type>[a-z]\w*)\s+(?P<redop>[a-z]\w*)\s+(?P<rest>[-\d.].*)$"
)
_RANK = re.compile(r"^#\s+Rank\s+\d+\s")
_BOUNDS = re.compile(r"^# Out of bounds values : (?P<count>\d{1,18}) (?P<word>OK|FAILED)")
_AVERAGE = re.compile(r"^# Avg bus bandwidth\s+: (?P<value>\d{1,18}(?:\.\d*)?)")
_WHERE = "nccl-tests"


@dataclass(frozen=True, slots=True)
class Side:
    """Out-of-place or in-place half of a row: time in µs, bandwidths in GB/s, wrong values (None: not validated)."""

    time: float
    algbw: float
    busbw: float
    wrong: int | None


@dataclass(frozen=True, slots=True)
class Row:
    """One message size in bytes; nccl-tests prints one half or two, out-of-place first."""

    size: int
    sides: tuple[Side, ...]

    @property
    def busbw(self) -> float:
        """Bus bandwidth of the slower half in GB/s."""
        return min(side.busbw for side in self.sides)


@dataclass(frozen=True, slots=True)
class CollectiveResult:
    """`ranks` counts the `Rank` lines, `out_of_bounds` the wrong values of all rows; None where the run did not end."""

    ranks: int
    rows: tuple[Row, ...]
    out_of_bounds: int | None
    average_busbw: float | None

    @property
    def wrong(self) -> int:
        """Wrong values found by validation, over all rows."""
        return sum(side.wrong or 0 for row in self.rows for side in row.sides)


def parse_collective(text: str) -> CollectiveResult:
    """Return one run; an aborted run has no totals. Raises `ParseError` for no row or an unknown row."""
    rows: list[Row] = []
    ranks, bounds, average = 0, None, None
    for number, line in enumerate(text.splitlines(), start=1):
        if row := _ROW.match(line):
            rows.append(Row(int(row["size"]), _sides(row["rest"].split(), number)))
        elif _RANK.match(line):
            ranks += 1
        elif match := _BOUNDS.match(line):
            bounds = int(match["count"])
        elif match := _AVERAGE.match(line):
            average = float(match["value"])
    if not rows:
        raise ParseError("no row of results in it", where=_WHERE)
    return CollectiveResult(ranks, tuple(rows), bounds, average)


def _sides(fields: list[str], number: int) -> tuple[Side, ...]:
    """Return the halves of four fields each; newer versions print the root rank before them."""
    values = fields[1:] if len(fields) % 4 == 1 else fields
    if len(values) not in (4, 8):
        raise ParseError(f"{len(fields)} fields after the operation, not 4, 5, 8 or 9", where=f"{_WHERE}:{number}")
    return tuple(_side(values[i : i + 4], number) for i in range(0, len(values), 4))


def _side(fields: list[str], number: int) -> Side:
    try:
        time, algbw, busbw = (float(field) for field in fields[:3])
        wrong = None if fields[3] == "N/A" else int(float(fields[3]))
    except (ValueError, OverflowError):
        raise ParseError(f"not numbers: {' '.join(fields)}", where=f"{_WHERE}:{number}") from None
    return Side(time, algbw, busbw, wrong)


_MISSING = re.compile(r"^# Missing rank (?P<rank>\d{1,18})(?: in step \d+)?: (?P<why>.+)$", re.MULTILINE)
_FAILED = re.compile(r"^# Failed rank (?P<rank>\d{1,18}): (?P<why>.+)$", re.MULTILINE)
_ENDED = re.compile(r"^# Rank (?P<rank>\d{1,18}) was ended by (?P<why>signal \d+)$", re.MULTILINE)
_STALLED = re.compile(r"^# (?:Stalled in step \d+|No end within .*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stopped:
    """`missing`: ranks that the others wait for; `failed`: ranks that ended with an error; each with the reason.

    `stalled`: the group made no progress, whether or not a missing rank is known.
    """

    missing: tuple[tuple[int, str], ...]
    failed: tuple[tuple[int, str], ...]
    stalled: bool


def parse_stopped(text: str) -> Stopped:
    """Return missing and failed ranks from the output of one or more nodes; empty for a group that ended well."""
    failed = {int(m["rank"]): m["why"] for pattern in (_FAILED, _ENDED) for m in pattern.finditer(text)}
    missing = {int(m["rank"]): m["why"] for m in _MISSING.finditer(text)}
    return Stopped(tuple(sorted(missing.items())), tuple(sorted(failed.items())), bool(_STALLED.search(text)))
