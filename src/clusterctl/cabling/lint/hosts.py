"""Hosts that are unlike the others: fewer adapters, a name that is nearly another's, an adapter on another rail."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.labels import shortened
from clusterctl.cabling.lint.plan_index import Listed, PlanIndex, Problem, ProblemKind, lines
from clusterctl.cabling.lint.rails import leaf_rails
from clusterctl.cabling.names import short
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key

_ALIKE = 4
"""Hosts with such names that prove what is usual."""
_SHARE = 0.6
_DIGITS = re.compile(r"\d+")


def host_flaws(plan: PlanIndex) -> Iterator[Problem]:
    """Yield a flaw for each host with fewer or more adapters than its like, for names that are nearly the same, and for
    adapters whose rail is not that of most hosts.
    """
    cables: dict[str, list[Listed]] = defaultdict(list)
    for entry in plan.listed:
        for end in entry.ends:
            if end.device in plan.hosts:
                cables[end.device].append(entry)
    yield from _counts(cables)
    yield from _names(cables)
    yield from _rails(plan, cables)


def _pattern(name: str) -> str:
    return _DIGITS.sub("#", short(name))


def _counts(cables: Mapping[str, list[Listed]]) -> Iterator[Problem]:
    alike: dict[str, list[str]] = defaultdict(list)
    for host in cables:
        alike[_pattern(host)].append(host)
    for hosts in alike.values():
        usual, count = Counter(len(cables[host]) for host in hosts).most_common(1)[0]
        if len(hosts) < _ALIKE or count < _SHARE * len(hosts):
            continue
        for host in sorted((h for h in hosts if len(cables[h]) != usual), key=natural_key):
            number = len(cables[host])
            word = "fewer" if number < usual else "more"
            cause = f"{host} has {number} cables, {word} than {usual}, which {count} of {len(hosts)} such hosts have"
            action = f"{host}: add or correct its lines in the plan"
            yield Problem(ProblemKind.ADAPTER_COUNT, cause, action, lines(cables[host]), (host,))


def _names(cables: Mapping[str, list[Listed]]) -> Iterator[Problem]:
    """Pairs of names that are the same but for case, domain or leading zeros; and rare names that are one letter apart
    from another, where both hosts together have no more cables than one such host has.
    """
    patterns = Counter(_pattern(host) for host in cables)
    plain: dict[str, list[str]] = defaultdict(list)
    for host in sorted(cables, key=natural_key):
        plain[_DIGITS.sub(lambda number: str(int(number[0])), short(host))].append(host)
    for same in plain.values():
        if len(same) > 1:
            yield _similar(same[0], same[1], cables)
    usual = {
        pattern: _usual(len(found) for host, found in cables.items() if _pattern(host) == pattern)
        for pattern in patterns
    }
    rare = [host for host in cables if patterns[_pattern(host)] < _ALIKE]
    for host in sorted(rare, key=natural_key):
        others = (
            other for other in cables if patterns[_pattern(other)] >= _ALIKE and _one_apart(short(host), short(other))
        )
        together = (o for o in others if len(cables[host]) + len(cables[o]) <= usual[_pattern(o)])
        other = next(together, None)
        if other is not None:
            yield _similar(host, other, cables)


def _usual(counts: Iterable[int]) -> int:
    return Counter(counts).most_common(1)[0][0]


def _similar(first: str, second: str, cables: Mapping[str, list[Listed]]) -> Problem:
    cause = (
        f"the host names {first} ({len(cables[first])} cables) and {second} ({len(cables[second])} cables) are nearly "
        "the same"
    )
    action = f"write one of them as the other if they are one host: {first} or {second}"
    where = lines([*cables[first][:2], *cables[second][:2]])
    return Problem(ProblemKind.SIMILAR_NAMES, cause, action, where, (first, second))


def _one_apart(first: str, second: str) -> bool:
    """Return whether one letter is replaced, missing or added, or two neighbours are exchanged."""
    if abs(len(first) - len(second)) > 1 or first == second:
        return False
    start = next((n for n, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        return True
    a, b = first[start:], second[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def _rails(plan: PlanIndex, cables: Mapping[str, list[Listed]]) -> Iterator[Problem]:
    """Where the plan names rails, adapters of one name are on one rail; leaves with several rails have own flaws."""
    mixed = {leaf for leaf, rails in leaf_rails(plan).items() if len(rails) > 1}
    found_on: dict[str, dict[str, list[tuple[PortName, Listed]]]] = defaultdict(lambda: defaultdict(list))
    for entry in plan.listed:
        if not entry.cable.rail or mixed & {end.device for end in entry.ends}:
            continue
        for end in entry.ends:
            if len(cables.get(end.device, ())) > 1 and not end.on_switch:  # one adapter may be on any rail
                found_on[end.port][entry.cable.rail].append((end, entry))
    for adapter, by_rail in found_on.items():
        usual, found = max(by_rail.items(), key=lambda item: len(item[1]))
        total = sum(map(len, by_rail.values()))
        if len(found) < max(_ALIKE, _SHARE * total):
            continue
        for rail, others in by_rail.items():
            if rail != usual:
                hosts = shortened(sorted((end.device for end, _ in others), key=natural_key))
                cause = f"{adapter} of {hosts} is on rail {rail}, and on rail {usual} of {len(found)} other hosts"
                action = f"{adapter}: correct the adapter or the rail"
                where = lines(entry for _, entry in others)
                yield Problem(ProblemKind.ADAPTER_RAIL, cause, action, where, tuple(end.device for end, _ in others))
