"""The rule by which switches are cabled: a lower switch's port tells the upper one, the upper one's port the lower."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.cabling.actions import Ends
from clusterctl.cabling.majority import alike, majority
from clusterctl.fleet.wiring import PortName

_SHARE = 0.125


@dataclass(frozen=True, slots=True)
class TrunkRule:
    """`expected` are the cables that the rule asks for; `pods` the groups of lower switches cabled alike."""

    expected: tuple[Ends, ...]
    pods: tuple[tuple[str, ...], ...]


def tiers(trunks: Iterable[Ends], hosts_at: Mapping[str, int]) -> dict[str, int]:
    """Switch → how many steps it is above the leaves, which are 0. `hosts_at` counts the host cables of a switch.

    More than one cable, and an eighth of all, makes a switch's tier: a host in a spine's port makes it no leaf.
    Switches of no tier are left out.
    """
    near: dict[str, Counter[str]] = defaultdict(Counter)
    for ends in trunks:
        a, b = (end.device for end in ends)
        near[a][b] += 1
        near[b][a] += 1
    cables = {device: near[device].total() + hosts_at.get(device, 0) for device in (*near, *hosts_at)}
    edge = {device for device, count in hosts_at.items() if count > max(1, _SHARE * cables[device])}
    level = dict.fromkeys(edge, 0)
    while edge:
        down: Counter[str] = Counter()
        for low in edge:
            down.update(near[low])
        upper = {d for d, count in down.items() if d not in level and count > max(1, _SHARE * cables[d])}
        level |= dict.fromkeys(upper, max(level.values()) + 1)
        edge = upper
    return level


def infer_trunks(trunks: Iterable[Ends], level: Mapping[str, int]) -> TrunkRule:
    """Of the cables one tier up. In a pod, port p of each switch leads to the same upper one; there, all cables of one
    lower switch are in the same port number, counted on where several run in parallel.
    """
    up: dict[str, dict[int, PortName]] = defaultdict(dict)
    for ends in trunks:
        low, high = sorted(ends, key=lambda end: level.get(end.device, -1))
        if level.get(low.device, -1) + 1 == level.get(high.device) and level.get(low.device, -1) >= 0:
            up[low.device][int(low.port)] = high
    pods = alike({low: {high.device for high in ports.values()} for low, ports in up.items()})
    expected = [ends for pod in pods for ends in _of_pod({low: up[low] for low in pod})]
    count = Counter(end for ends in expected for end in ends)
    return TrunkRule(tuple(e for e in expected if all(count[end] == 1 for end in e)), tuple(pods))


def _of_pod(up: Mapping[str, Mapping[int, PortName]]) -> list[Ends]:
    at: dict[int, list[str]] = defaultdict(list)
    for ports in up.values():
        for number, high in ports.items():
            at[number].append(high.device)
    above = {number: upper for number in sorted(at) if (upper := majority(at[number]))}
    parallel: Counter[str] = Counter()
    nth = {}
    for number, upper in above.items():
        nth[number] = parallel[upper]
        parallel[upper] += 1
    expected = []
    for low, ports in up.items():
        own = majority(int(high.port) - nth[number] for number, high in ports.items() if number in nth)
        if own is not None:
            expected += [
                frozenset((PortName(low, str(number)), PortName(upper, str(own + nth[number]))))
                for number, upper in above.items()
            ]
    return expected
