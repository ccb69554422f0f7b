"""Links that run below what they should."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from clusterctl.cabling.explain import Explanation, Kind
from clusterctl.cabling.names import ObservedCable
from clusterctl.cabling.wording import Words


def slow_links(cables: Iterable[ObservedCable], words: Words, host_gbps: float | None) -> tuple[Explanation, ...]:
    """`host_gbps` is what a host's link must reach; without it, and between switches, what most such links have."""
    classes: dict[bool, list[ObservedCable]] = defaultdict(list)
    for cable in cables:
        classes[_to_host(cable, words)].append(cable)
    found = []
    for to_host, members in classes.items():
        expected = host_gbps if to_host and host_gbps is not None else _usual(members)
        found += [_explain(cable, expected, words) for cable in members if cable.link.gbps < expected]
    return tuple(found)


def _to_host(cable: ObservedCable, words: Words) -> bool:
    return any(end.device in words.plan.hosts for end in cable.ends)


def _usual(cables: Iterable[ObservedCable]) -> float:
    """The most common rate; of equally common ones the higher."""
    counts = Counter(cable.link.gbps for cable in cables)
    return max(counts, key=lambda gbps: (counts[gbps], gbps))


def _explain(cable: ObservedCable, expected: float, words: Words) -> Explanation:
    first, second = sorted(cable.ends, key=lambda end: (end.device not in words.plan.hosts, end))
    link = f"{words.port(first)} – {words.port(second)}"
    return Explanation(
        kind=Kind.SLOW_LINK,
        cause=f"the link {link} runs at {cable.link.rate} ({cable.link.gbps:g} Gb/s) instead of {expected:g} Gb/s",
        action=f"{words.at(first.device)}{words.port(first)}: clean and reseat the cable to {words.port(second)}, "
        "then replace it",
        nodes=tuple(sorted(end.device for end in cable.ends if end.device in words.plan.hosts)),
        ports=(first, second),
        rack=words.rack(first.device, second.device),
    )
