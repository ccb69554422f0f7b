"""Growth of a port's counters between two readings. A counter's absolute value proves nothing: it may be years old."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.fabric.telemetry import HIGHEST, PortCounters

_SPAN = 1 << 64
_NARROW_TRAFFIC = 0xFFFFFFFF
_WORD_BITS = 32
"""PortXmitData and PortRcvData count words of 4 bytes."""


class Doubt(enum.Enum):
    """Why a counter's growth may be incomplete."""

    NOT_READ = "not_read"
    CLEARED = "cleared"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Growth:
    """`counts`: the proven growth by counter; `doubts`: the counters that may have grown more."""

    counts: Mapping[str, int] = field(default_factory=dict)
    doubts: Mapping[str, Doubt] = field(default_factory=dict)

    def of(self, counter: str) -> int:
        """Return the proven growth of a counter."""
        return self.counts.get(counter, 0)


def growth(before: PortCounters | None, after: PortCounters | None) -> Growth:
    """Return the growth between two readings of one port; None stands for a missing reading."""
    if before is None or after is None:
        return Growth(doubts=dict.fromkeys(HIGHEST, Doubt.NOT_READ))
    counts: dict[str, int] = {}
    doubts: dict[str, Doubt] = {}
    for counter in before.values.keys() | after.values.keys() | HIGHEST.keys():
        if counter not in before.values or counter not in after.values:
            doubts[counter] = Doubt.NOT_READ
            continue
        counts[counter], doubt = _added(before, after, counter)
        if doubt is not None:
            doubts[counter] = doubt
    return Growth(counts, doubts)


def _added(before: PortCounters, after: PortCounters, counter: str) -> tuple[int, Doubt | None]:
    """Return the growth, and why it may be more. A smaller value is a wrap only if the counter was nearly full."""
    first, last = before.values[counter], after.values[counter]
    if before.narrow is not after.narrow and max(first, last) >= HIGHEST.get(counter, _NARROW_TRAFFIC):
        return 0, Doubt.STOPPED  # one tool reads 64 bits, the other a counter that has stopped
    if last >= first:
        return last - first, Doubt.STOPPED if after.stopped(counter) else None
    if not after.narrow and first - last > _SPAN // 2:
        return last + _SPAN - first, None
    return last, Doubt.CLEARED


def throughput_gbps(grown: Growth, seconds: float) -> tuple[float | None, float | None]:
    """Return the mean Gb/s sent and received over the interval; None where unknown."""
    sent, received = (
        None if counter in grown.doubts or counter not in grown.counts else grown.counts[counter]
        for counter in ("PortXmitData", "PortRcvData")
    )
    return _gbps(sent, seconds), _gbps(received, seconds)


def _gbps(words: int | None, seconds: float) -> float | None:
    return None if words is None else words * _WORD_BITS / seconds / 1e9
