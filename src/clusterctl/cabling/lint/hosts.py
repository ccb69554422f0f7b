"""Hosts that differ from the others: fewer adapters, a name that is nearly another's, an adapter on another rail."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.labels import shortened
from clusterctl.cabling.lint.plan_index import ListedPort, PlanIndex, PlanProblem, ProblemKind, lines
from clusterctl.cabling.lint.rails import leaf_rails
from clusterctl.cabling.names import short
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key

_ALIKE = 4
"""Hosts of one pattern of names that are enough to show what is usual."""
_SHARE = 0.6
_DIGITS = re.compile(r"\d+")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
"""Leading zeros of each number."""
_End = tuple[PortName, ListedPort]
"""An adapter's port, and the cable that is plugged into it."""


def host_flaws(plan: PlanIndex) -> Iterator[PlanProblem]:
    """Yield hosts with fewer or more adapters than similar hosts, names that are nearly the same, and adapters on
    another rail than those of most hosts.
    """
    cables: dict[str, list[ListedPort]] = defaultdict(list)
    for entry in plan.listed:
        for end in entry.ends:
            if end.device in plan.hosts:
                cables[end.device].append(entry)
    yield from _counts(cables)
    yield from _names(cables)
    yield from _rails(plan, cables)


def _pattern(name: str) -> str:
    return _DIGITS.sub("#", short(name))


def _counts(cables: Mapping[str, list[ListedPort]]) -> Iterator[PlanProblem]:
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
            yield PlanProblem(ProblemKind.ADAPTER_COUNT, cause, action, lines(cables[host]), (host,))


def _names(cables: Mapping[str, list[ListedPort]]) -> Iterator[PlanProblem]:
    """Yield pairs of host names that are nearly the same."""
    yield from _spelled_otherwise(cables)
    yield from _mistyped(cables)


def _spelled_otherwise(cables: Mapping[str, list[ListedPort]]) -> Iterator[PlanProblem]:
    """Yield names that differ in case, domain or leading zeros only."""
    plain: dict[str, list[str]] = defaultdict(list)
    for host in sorted(cables, key=natural_key):
        plain[_ZEROS.sub("", short(host))].append(host)
    for same in plain.values():
        if len(same) > 1:
            yield _similar(same[0], same[1], cables)


def _mistyped(cables: Mapping[str, list[ListedPort]]) -> Iterator[PlanProblem]:
    """Yield rare names that are one letter apart from another, where both have no more cables than one host has."""
    patterns = {host: _pattern(host) for host in cables}
    usual = _usual_counts(cables, patterns)
    common = [host for host, pattern in patterns.items() if pattern in usual]
    for host in sorted(sorted(cables.keys() - set(common)), key=natural_key):
        alike = (other for other in common if _one_apart(short(host), short(other)))
        together = (other for other in alike if len(cables[host]) + len(cables[other]) <= usual[patterns[other]])
        other = next(together, None)
        if other is not None:
            yield _similar(host, other, cables)


def _usual_counts(cables: Mapping[str, list[ListedPort]], patterns: Mapping[str, str]) -> dict[str, int]:
    """Return the usual number of cables of each pattern that enough hosts have."""
    counts: dict[str, list[int]] = defaultdict(list)
    for host, pattern in patterns.items():
        counts[pattern].append(len(cables[host]))
    return {pattern: _usual(found) for pattern, found in counts.items() if len(found) >= _ALIKE}


def _usual(counts: Iterable[int]) -> int:
    return Counter(counts).most_common(1)[0][0]


def _similar(first: str, second: str, cables: Mapping[str, list[ListedPort]]) -> PlanProblem:
    cause = (
        f"the host names {first} ({len(cables[first])} cables) and {second} ({len(cables[second])} cables) are nearly "
        "the same"
    )
    action = f"write one of them as the other if they are one host: {first} or {second}"
    where = lines([*cables[first][:2], *cables[second][:2]])
    return PlanProblem(ProblemKind.SIMILAR_NAMES, cause, action, where, (first, second))


def _one_apart(first: str, second: str) -> bool:
    """Return whether one letter is replaced, missing or added, or two neighbours are exchanged."""
    if abs(len(first) - len(second)) > 1 or first == second:
        return False
    start = next((n for n, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), None)
    if start is None:
        return True
    a, b = first[start:], second[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


def _rails(plan: PlanIndex, cables: Mapping[str, list[ListedPort]]) -> Iterator[PlanProblem]:
    """Yield adapters on another rail than those of the same name, where the plan names rails."""
    for adapter, by_rail in _by_adapter(plan, cables).items():
        usual, found = max(by_rail.items(), key=lambda item: len(item[1]))
        if len(found) < max(_ALIKE, _SHARE * sum(map(len, by_rail.values()))):
            continue
        for rail, others in by_rail.items():
            if rail != usual:
                yield _other_rail(adapter, rail, others, f"rail {usual} of {len(found)} other hosts")


def _by_adapter(plan: PlanIndex, cables: Mapping[str, list[ListedPort]]) -> Mapping[str, dict[str, list[_End]]]:
    """Return the ends of hosts by the adapter's name and the rail, without leaves of several rails.

    These leaves have problems of their own. The only adapter of a host may be on any rail.
    """
    mixed = {leaf for leaf, rails in leaf_rails(plan).items() if len(rails) > 1}
    found: dict[str, dict[str, list[_End]]] = defaultdict(lambda: defaultdict(list))
    for entry in plan.listed:
        if entry.cable.rail and mixed.isdisjoint(end.device for end in entry.ends):
            for end in entry.ends:
                if len(cables.get(end.device, ())) > 1 and not end.on_switch:
                    found[end.port][entry.cable.rail].append((end, entry))
    return found


def _other_rail(adapter: str, rail: str, others: list[_End], usual: str) -> PlanProblem:
    names = tuple(end.device for end, _ in others)
    hosts = shortened(sorted(names, key=natural_key))
    cause = f"{adapter} of {hosts} is on rail {rail}, and on {usual}"
    action = f"{adapter}: correct the adapter or the rail"
    return PlanProblem(ProblemKind.ADAPTER_RAIL, cause, action, lines(entry for _, entry in others), names)
