"""Links that run below what they should."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterctl.cabling.actions import Ends, carry_out
from clusterctl.cabling.difference import components
from clusterctl.cabling.explain.absence import AbsentGroup, absent_groups, cuts_off, explain_group, with_consequence
from clusterctl.cabling.explain.devices import (
    duplicates,
    explain_strangers,
    misnamed,
    strangers_apart,
    unknown_adapters,
)
from clusterctl.cabling.explain.explanation import Explanation, Kind
from clusterctl.cabling.explain.misplaced import explain_component, rails_of
from clusterctl.cabling.explain.observation import Sighting, sight
from clusterctl.cabling.explain.twin_cages import join_cages
from clusterctl.cabling.labels import Words, words_for
from clusterctl.cabling.names import Hosts, ObservedCable
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan

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


@dataclass(frozen=True, slots=True)
class HostLinks:
    """Of one planned host: links planned, seen where they belong, and the slowest of those (Gb/s, None without any)."""

    planned: int
    right: int
    slowest_gbps: float | None


@dataclass(frozen=True, slots=True)
class Verification:
    """`planned`, `observed` and `right` count cables; `explanations` is empty only where every planned one is right,
    nothing else is there, and no link is slow. They are in order of racks; `names` are the cabled ports' names as
    they use them, and `cables` what is plugged in, by these names.
    """

    planned: int
    observed: int
    right: int
    explanations: tuple[Explanation, ...]
    hosts: Mapping[str, HostLinks]
    names: Mapping[PortId, PortName] = field(default_factory=dict)
    cables: frozenset[Ends] = frozenset()
    host_gbps: float | None = None

    @property
    def moves(self) -> int:
        """The physical actions of all explanations."""
        return sum(explanation.moves for explanation in self.explanations)

    @property
    def dark_hosts(self) -> frozenset[str]:
        """Planned hosts that show none of their adapters: they may be off, or not installed yet."""
        return frozenset(self.hosts.keys() - {end.device for ends in self.cables for end in ends})


def verify(
    plan: WiringPlan, fabric: Fabric, hosts: Hosts | None = None, *, host_gbps: float | None = None
) -> Verification:
    """`hosts` are GUIDs known from elsewhere; `host_gbps` the rate that a host's link must have.

    Without `host_gbps` a link is slow when most links of its class (host, or switch to switch) are faster.
    """
    seen = sight(plan, fabric, hosts or {})
    words = words_for(plan, fabric, seen.names)
    right = [cable for cable in seen.difference.right if cable.ends.isdisjoint(seen.assumed)]
    found = (
        *misnamed(seen, words),
        *duplicates(seen, words),
        *unknown_adapters(seen, words),
        *_absent_and_misplaced(seen, absent_groups(plan, seen.difference), words),
        *slow_links(_between_planned(seen.cables, words), words, host_gbps),
    )
    return Verification(
        planned=len(plan.cables),
        observed=len(seen.cables),
        right=len(right),
        explanations=tuple(sorted(found, key=lambda e: (not e.rack, e.rack))),
        hosts=_host_links(plan, right),
        names=seen.names,
        cables=frozenset(cable.ends for cable in seen.cables),
        host_gbps=host_gbps,
    )


def _absent_and_misplaced(seen: Sighting, groups: tuple[AbsentGroup, ...], words: Words) -> list[Explanation]:
    """What is absent, strange or misplaced; an absence that a misplaced cable explains is told as its consequence."""
    explained = {cable.ends for group in groups for cable in (*group.boundary, *group.inner)}
    strangers, rest = strangers_apart(seen.difference, words.devices)
    missing = [cable for cable in seen.difference.missing if cable.ends not in explained]
    rails = rails_of(words.plan)
    alone = (explain_component(component, words, rails) for component in components(missing, rest))
    misplaced = join_cages(alone, {port.device for port in seen.difference.observed_ports}, words)
    absent = []
    for group in groups:
        first = next((n for n, e in enumerate(misplaced) if cuts_off(e, group)), None) if not group.boundary else None
        if first is None:
            absent.append(explain_group(group, words))
        else:
            misplaced[first] = with_consequence(misplaced[first], group, words)
    return [*absent, *explain_strangers(strangers, words), *misplaced]


def _between_planned(cables: Iterable[ObservedCable], words: Words) -> list[ObservedCable]:
    """A misplaced cable's rate counts as well; a stranger's does not."""
    return [cable for cable in cables if all(end.device in words.devices for end in cable.ends)]


def _host_links(plan: WiringPlan, right: Iterable[ObservedCable]) -> dict[str, HostLinks]:
    planned: dict[str, int] = dict.fromkeys(sorted(plan.hosts), 0)
    for cable in plan.cables:
        for end in cable.ends:
            if end.device in planned:
                planned[end.device] += 1
    rates: dict[str, list[float]] = defaultdict(list)
    for seen in right:
        for end in seen.ends:
            rates[end.device].append(seen.link.gbps)
    return {
        host: HostLinks(count, len(rates.get(host, ())), min(rates.get(host, ()), default=None))
        for host, count in planned.items()
    }


@dataclass(frozen=True, slots=True)
class Recheck:
    """`mended` were found before and are not any more, `left` are as before, `new` were not there; `undone` are cables
    that the work before should have left as they now are not.
    """

    mended: tuple[Explanation, ...]
    left: tuple[Explanation, ...]
    new: tuple[Explanation, ...]
    undone: tuple[Ends, ...]


def recheck(before: Verification, after: Verification) -> Recheck:
    """Both against the same plan. A finding is the same where its kind and what it is about are."""
    known = Counter(map(_key, before.explanations))
    now = Counter(map(_key, after.explanations))
    expected = carry_out((step for e in before.explanations for step in e.steps), before.cables)
    return Recheck(
        mended=tuple(e for e in before.explanations if _key(e) not in now),
        left=tuple(e for e in after.explanations if _key(e) in known),
        new=tuple(e for e in after.explanations if _key(e) not in known),
        undone=tuple(sorted(expected - after.cables, key=sorted)),
    )


def _key(explanation: Explanation) -> tuple[object, ...]:
    return explanation.kind, explanation.subjects, explanation.ports
