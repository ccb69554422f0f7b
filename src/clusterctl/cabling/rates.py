"""Links that run below what they should."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.names import ObservedCable
from clusterctl.cabling.wording import Words

_Class = tuple[bool, tuple[str, ...]]
"""Whether a host is at an end, and what the devices are called without their numbers (compute and storage differ)."""
_ENOUGH = 4
"""Fewer links than this tell nothing about their like: they are compared with all of their side."""
_DIGITS = re.compile(r"\d+")


def slow_links(cables: Iterable[ObservedCable], words: Words, host_gbps: float | None) -> tuple[Explanation, ...]:
    """`host_gbps` is what a host's link must reach; without it, and between switches, what most of their like have."""
    classes: dict[_Class, list[ObservedCable]] = defaultdict(list)
    for cable in cables:
        classes[_to_host(cable, words), _stems(cable)].append(cable)
    for key in [key for key, members in classes.items() if key[1] and len(members) < _ENOUGH]:
        classes[key[0], ()] += classes.pop(key)
    found = []
    for (to_host, _), members in classes.items():
        expected = host_gbps if to_host and host_gbps is not None else _usual(members)
        lanes = Counter(cable.link.width for cable in members).most_common(1)[0][0]
        found += [_explain(cable, expected, lanes, words) for cable in members if cable.link.gbps < expected]
    return tuple(found)


def _to_host(cable: ObservedCable, words: Words) -> bool:
    return any(end.device in words.plan.hosts for end in cable.ends)


def _stems(cable: ObservedCable) -> tuple[str, ...]:
    return tuple(sorted(_DIGITS.sub("#", end.device) for end in cable.ends))


def _usual(cables: Iterable[ObservedCable]) -> float:
    """The most common rate; of equally common ones the higher."""
    counts = Counter(cable.link.gbps for cable in cables)
    return max(counts, key=lambda gbps: (counts[gbps], gbps))


def _explain(cable: ObservedCable, expected: float, lanes: int, words: Words) -> Explanation:
    first, second = sorted(cable.ends, key=lambda end: (end.device not in words.plan.hosts, end))
    link = f"{words.port(first)} – {words.port(second)}"
    return Explanation(
        kind=Kind.DOWN_WIDTH if cable.link.width < lanes else Kind.DOWN_SPEED,
        cause=f"the link {link} runs at {cable.link.rate} ({cable.link.gbps:g} Gb/s) instead of {expected:g} Gb/s",
        action=f"{words.at(first.device)}{words.port(first)}: clean and reseat the cable to {words.port(second)}, "
        "then replace it",
        nodes=tuple(sorted(end.device for end in cable.ends if end.device in words.plan.hosts)),
        ports=(first, second),
        rack=words.rack(first.device, second.device),
    )
