"""What was added to a port's counters between two readings. What stands in them tells nothing: it may be years old."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.fabric.telemetry import HIGHEST, PortCounters

_SPAN = 1 << 64
_WORD_BITS = 32
"""PortXmitData and PortRcvData count words of 4 bytes."""
NOT_READ = "were not read twice"
CLEARED = "were cleared in between (by hand, or the device restarted)"
STOPPED = "stand at their highest value and count no further"


@dataclass(frozen=True, slots=True)
class Growth:
    """`counts`: what was surely added, by counter; `doubts`: for which of them that may not be all, and why."""

    counts: Mapping[str, int] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)

    def of(self, counter: str) -> int:
        return self.counts.get(counter, 0)


def growth(before: PortCounters | None, after: PortCounters | None) -> Growth:
    """Between two readings of one port; None where it was not read."""
    if before is None or after is None:
        return Growth(doubts=dict.fromkeys(HIGHEST, NOT_READ))
    counts, doubts = {}, {}
    for counter in before.values.keys() | after.values.keys() | HIGHEST.keys():
        if counter not in before.values or counter not in after.values:
            doubts[counter] = NOT_READ
            continue
        counts[counter], doubt = _added(before, after, counter)
        if doubt:
            doubts[counter] = doubt
    return Growth(counts, doubts)


def _added(before: PortCounters, after: PortCounters, counter: str) -> tuple[int, str]:
    """How much, and why it may be more. One that is less than it was has wrapped only where it was nearly full."""
    first, last = before.values[counter], after.values[counter]
    if last >= first:
        return last - first, STOPPED if after.stopped(counter) else ""
    if not after.narrow and first - last > _SPAN // 2:
        return last + _SPAN - first, ""
    return last, CLEARED


def throughput_gbps(grown: Growth, seconds: float) -> tuple[float | None, float | None]:
    """Mean Gb/s sent and received over the interval; None where it is not known."""
    sent, received = (
        None if counter in grown.doubts or counter not in grown.counts else grown.counts[counter]
        for counter in ("PortXmitData", "PortRcvData")
    )
    return _gbps(sent, seconds), _gbps(received, seconds)


def _gbps(words: int | None, seconds: float) -> float | None:
    return None if words is None else words * _WORD_BITS / seconds / 1e9
