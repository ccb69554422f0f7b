"""What the node program torch-group prints of a group that did not come to its end: who is missing, who failed, why."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MISSING = re.compile(r"^# Missing rank (?P<rank>\d+)(?: in step \d+)?: (?P<why>.+)$", re.MULTILINE)
_FAILED = re.compile(r"^# Failed rank (?P<rank>\d+): (?P<why>.+)$", re.MULTILINE)
_ENDED = re.compile(r"^# Rank (?P<rank>\d+) was ended by (?P<why>signal \d+)$", re.MULTILINE)
_STALLED = re.compile(r"^# (?:Stalled in step \d+|No end within .*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Stopped:
    """`missing`: ranks that keep the others waiting, `failed`: those that ended with an error; each with the reason.

    `stalled`: nobody got any further, whether or not it is known who is missing.
    """

    missing: tuple[tuple[int, str], ...]
    failed: tuple[tuple[int, str], ...]
    stalled: bool


def parse_stopped(text: str) -> Stopped:
    """Read the output of one node, or of several after one another; of a group that ended well it is empty."""
    failed = {int(m["rank"]): m["why"] for pattern in (_FAILED, _ENDED) for m in pattern.finditer(text)}
    missing = {int(m["rank"]): m["why"] for m in _MISSING.finditer(text)}
    return Stopped(tuple(sorted(missing.items())), tuple(sorted(failed.items())), bool(_STALLED.search(text)))
