"""`turbostat --quiet --show Package,CPU,Bzy_MHz`: how fast each processor ran while it was busy (turbostat(8))."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

_WHERE = "turbostat"


@dataclass(frozen=True, slots=True)
class CpuClock:
    """One logical processor: its package (socket), and its mean clock in MHz while it was not idle."""

    package: int
    cpu: int
    busy_mhz: float


@functools.lru_cache(maxsize=16)
def parse_turbostat(text: str) -> tuple[CpuClock, ...]:
    """Read the table; its line of means over the whole machine (`-`) is left out.

    `ParseError` where a column or every processor is missing, or a figure is not understood.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    start = next((i for i, words in enumerate(lines) if {"CPU", "Bzy_MHz"} <= set(words)), None)
    if start is None:
        raise ParseError("no table with the columns CPU and Bzy_MHz", where=_WHERE)
    header = lines[start]
    rows = [dict(zip(header, words, strict=True)) for words in lines[start + 1 :] if len(words) == len(header)]
    clocks = tuple(_clock(row) for row in rows if row["CPU"] != "-")
    if not clocks:
        raise ParseError("no processor in the table", where=_WHERE)
    return clocks


def _clock(row: dict[str, str]) -> CpuClock:
    """A machine with one package has no column of that name."""
    try:
        return CpuClock(int(row.get("Package", "0")), int(row["CPU"]), float(row["Bzy_MHz"]))
    except ValueError as error:
        raise ParseError(f"a figure is not understood: {error}", where=_WHERE) from None
