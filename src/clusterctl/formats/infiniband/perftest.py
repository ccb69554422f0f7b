"""perftest's bandwidth tests (`ib_write_bw`, `ib_read_bw`, `ib_send_bw`): the text table.

Its JSON is not used: that of Debian 12 is invalid, and it omits the unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError

_HEADER = re.compile(
    r"^\s*#bytes\s+#iterations\s+BW peak\[(?P<unit>[^\]]+)\]\s+BW average\[(?P=unit)\]\s+MsgRate\[Mpps\]"
)
_FIGURE = r"\d{1,18}(?:\.\d*)?"
_ROW = re.compile(
    r"^\s*(?P<bytes>\d{1,18})\s+(?P<count>\d{1,18})"
    rf"\s+(?P<peak>{_FIGURE})\s+(?P<average>{_FIGURE})\s+(?P<rate>{_FIGURE})\s*$"
)
_BITS_PER_UNIT = {"Gb/sec": 1e9, "MB/sec": 8 * 2**20}
"""perftest counts a MB as 2**20 bytes and a Gb as 10**9 bits (`format_factor` in its perftest_parameters.h)."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """One row: message size in bytes, messages sent, bandwidths in Gb/s (10**9 bits), millions of messages per second.

    `peak` is 0 where the test ran for a time (`-D`).
    """

    message_bytes: int
    iterations: int
    peak: float
    average: float
    message_rate: float


def parse_bandwidth(text: str) -> tuple[Bandwidth, ...]:
    """Return all rows, in order. Raises `ParseError` for no table, no row, or an unknown unit."""
    factor: float | None = None
    rows: list[Bandwidth] = []
    for line in text.splitlines():
        if header := _HEADER.match(line):
            unit = header["unit"]
            if unit not in _BITS_PER_UNIT:
                raise ParseError(f"unit {unit!r} is not known", where="perftest")
            factor = _BITS_PER_UNIT[unit] / 1e9
        elif (row := _ROW.match(line)) and factor is not None:
            peak, average = float(row["peak"]) * factor, float(row["average"]) * factor
            rows.append(Bandwidth(int(row["bytes"]), int(row["count"]), peak, average, float(row["rate"])))
    if not rows:
        raise ParseError("no bandwidth table in it", where="perftest")
    return tuple(rows)
