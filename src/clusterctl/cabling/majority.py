"""What most say: the votes from which a wiring rule is inferred."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from itertools import combinations
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

MIN_WITNESSES = 3
"""Two that agree may be two that are wrong in the same way."""
_SHARE = 2 / 3
"""Less than this is no rule, but a mixture."""


def majority(votes: Iterable[T]) -> T | None:
    """What at least two thirds say, of three or more; else None."""
    counts = Counter(votes)
    if not counts:
        return None
    winner, count = counts.most_common(1)[0]
    return winner if count >= MIN_WITNESSES and count >= _SHARE * counts.total() else None


def alike(sets: Mapping[str, set[str]]) -> list[tuple[str, ...]]:
    """Names in groups: two belong together where the smaller one shares more than half of its members."""
    shared: Counter[tuple[str, str]] = Counter()
    by_member: dict[str, list[str]] = defaultdict(list)
    for name, members in sets.items():
        for member in members:
            by_member[member].append(name)
    for names in by_member.values():
        shared.update(combinations(sorted(names), 2))
    leader = {name: name for name in sets}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for (a, b), count in shared.items():
        if 2 * count > min(len(sets[a]), len(sets[b])):
            leader[find(b)] = find(a)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in sorted(sets):
        groups[find(name)].append(name)
    return [tuple(group) for group in groups.values()]
