"""Devices that stand in another's place: their neighbours know better than their names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.wiring import PortName, WiringPlan

MIN_VOTES = 3
"""Fewer neighbours than this cannot outvote a name: two misplaced cables look the same."""


def vote(cables: Iterable[ObservedCable], plan: WiringPlan) -> dict[str, str]:
    """Observed device → the planned device whose place it stands in, where that is another one.

    A device is renamed when more than half of its cables end at the neighbours that the plan gives to the other, port
    by port, and when the name is free: nobody carries it, or whoever does is renamed as well.
    """
    peers = {a: b for cable in plan.cables for a, b in _both_ways(cable.ends)}
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    sizes: Counter[str] = Counter()
    for cable in cables:
        for near, far in _both_ways(cable.ends):
            sizes[near.device] += 1
            planned = peers.get(far)
            if planned is not None and (planned.port == near.port or planned.device == near.device):
                votes[near.device][planned.device] += 1
    renamed = {}
    for device, counted in votes.items():
        winner, count = counted.most_common(1)[0]
        if winner != device and count >= MIN_VOTES and 2 * count > sizes[device]:
            renamed[device] = winner
    return _consistent(renamed, set(sizes))


def _both_ways(ends: frozenset[PortName]) -> tuple[tuple[PortName, PortName], ...]:
    first, *rest = sorted(ends)
    return ((first, rest[0]), (rest[0], first)) if rest else ()


def _consistent(renamed: Mapping[str, str], observed: set[str]) -> dict[str, str]:
    """Without those whose new name is taken by a device that keeps it, or wanted twice."""
    kept = dict(renamed)
    while True:
        wanted = Counter(kept.values())
        wrong = [d for d, name in kept.items() if wanted[name] > 1 or (name in observed and name not in kept)]
        if not wrong:
            return kept
        for device in wrong:
            del kept[device]
