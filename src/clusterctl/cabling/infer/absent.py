"""Switches that are absent from a fabric without a plan: a gap in names, and the same gap in ports of their neighbours.

Both gaps must exist: a name alone may be unused, and ports alone may be spare. The names of a row begin at 1, or at 0
where the names of another row do: so the first switch of a row leaves both gaps too. The last one leaves none.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from clusterctl.cabling.actions import Ends
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import ranges, shortened
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key

_LAST_NUMBER = re.compile(r"(.*?)([0-9]{1,9})(\D*)$")
_FEWEST = 2
_TOGETHER = 5
"""Fewest switches of a row, fewest neighbours with the same gap, and of both together, for a gap to prove something."""

Ports = Mapping[int, PortName]
"""A switch's port numbers, and the far ends of their cables."""


@dataclass(frozen=True, slots=True)
class Switches:
    """What is known of the switches without a plan.

    pods   groups of lower switches that are cabled alike
    level  the tier of each switch; 0 are the leaves
    far    the far ends of the cables between switches, by switch and port number
    hosts  the ports with adapters, by switch
    """

    pods: tuple[tuple[str, ...], ...]
    level: Mapping[str, int]
    far: Mapping[str, Ports]
    hosts: Mapping[str, set[int]]

    def is_used(self, switch: str, number: int) -> bool:
        """Return whether a cable is in the port."""
        return number in self.far.get(switch, {}) or number in self.hosts.get(switch, ())

    def upward(self, switch: str) -> dict[int, PortName]:
        """Return the ports that lead one tier up."""
        above = self.level.get(switch, -1) + 1
        return {number: port for number, port in self.far[switch].items() if self.level.get(port.device, -1) == above}


def far_ports(trunks: Iterable[Ends]) -> dict[str, Ports]:
    """Return the far ends of the cables between switches, by switch and port number."""
    far: dict[str, dict[int, PortName]] = defaultdict(dict)
    for ends in trunks:
        a, b = sorted(ends)
        far[a.device][a.number], far[b.device][b.number] = b, a
    return dict(far)


def absent_switches(switches: Switches) -> Iterator[CablingExplanation]:
    """Yield one explanation for each absent switch."""
    found: set[str] = set()
    start = _first_number(switches.far)
    for pod in switches.pods:
        for neighbours, row in _rows(pod, switches.far, switches.level):
            for name, ports in (*_gaps(neighbours, row), *_before(neighbours, row, switches, start)):
                if name not in switches.far and name not in found:
                    found.add(name)
                    yield _explain(name, ports, neighbours, row)


def _rows(
    pod: tuple[str, ...], far: Mapping[str, Ports], level: Mapping[str, int]
) -> Iterator[tuple[dict[str, Ports], set[str]]]:
    """Yield the upper and the lower switches of a pod, each with the ports of the others that lead to them."""
    lower = set(pod)
    near = {port.device for low in pod for port in far[low].values()}
    upper = {high for high in near if level.get(high, -1) == level.get(pod[0], -1) + 1}
    yield {low: _leading_to(upper, far[low]) for low in pod}, upper
    yield {high: _leading_to(lower, far[high]) for high in upper}, lower


def _leading_to(row: set[str], ports: Ports) -> Ports:
    return {number: port for number, port in ports.items() if port.device in row}


def _gaps(neighbours: Mapping[str, Ports], row: set[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield name and ports of each switch that both gaps show."""
    if not _prove(neighbours, row):
        return
    used = Counter(number for ports in neighbours.values() for number in ports)
    free = [number for number in range(min(used), max(used) + 1) if not used[number]]
    width = usual_width(neighbours.values())
    names = list(islice(_missing_names(row), len(free) + 1))
    if free and len(free) == width * len(names):
        for place, name in enumerate(names):
            yield name, free[place * width : (place + 1) * width]


def _prove(neighbours: Mapping[str, Ports], row: set[str]) -> bool:
    """Return whether there are enough switches, and a cable of each neighbour to the row."""
    few = min(len(row), len(neighbours)) < _FEWEST or len(row) + len(neighbours) < _TOGETHER
    return not few and all(neighbours.values())


def _suggest(neighbours: Mapping[str, Ports], row: set[str]) -> bool:
    """Return whether the only switch of a row, with three neighbours or more, may be the second of two."""
    return len(row) == 1 and len(neighbours) > _FEWEST and all(neighbours.values())


def _before(
    neighbours: Mapping[str, Ports], row: set[str], switches: Switches, start: int
) -> Iterator[tuple[str, list[int]]]:
    """Yield name and ports of each switch that is absent before the first of its row.

    The row is in the order of its numbers at each neighbour, and the ports right before it are free on all.
    """
    if not (_prove(neighbours, row) or _suggest(neighbours, row)):
        return
    names = _names_before(row, start)
    first = min(number for ports in neighbours.values() for number in ports)
    width = usual_width(neighbours.values())
    free = range(first - width * len(names), first)
    used = any(switches.is_used(switch, number) for switch in neighbours for number in free)
    if names and free[0] >= 1 and not used and _in_order(neighbours):
        for place, name in enumerate(names):
            yield name, list(free[place * width : (place + 1) * width])


def _names_before(row: set[str], start: int) -> list[str]:
    """Return the names before the first of a row; none where more are missing than exist, or where it is no row."""
    series = _series(row)
    if len(series) != 1 or sum(map(len, series.values())) != len(row):
        return []
    ((head, tail), numbers), *_ = series.items()
    missing = range(start, min(numbers))
    width = min(numbers.values())
    return [f"{head}{number:0{width}}{tail}" for number in missing] if len(missing) < max(2, len(row)) else []


def _in_order(neighbours: Mapping[str, Ports]) -> bool:
    """Return whether the ports of most neighbours lead to the row in the order of its numbers."""
    found = [[natural_key(ports[number].device) for number in sorted(ports)] for ports in neighbours.values()]
    return 2 * sum(names == sorted(names) for names in found) > len(found)


def _first_number(names: Iterable[str]) -> int:
    """Return where rows of switches begin: at 0 where one of them does, else at 1."""
    return 0 if any(0 in numbers for numbers in _series(names).values()) else 1


def usual_width(neighbours: Iterable[Ports]) -> int:
    """Return the usual number of cables between two switches."""
    return Counter(count for ports in neighbours for count in _links(ports).values()).most_common(1)[0][0]


def _links(ports: Ports) -> Counter[str]:
    return Counter(port.device for port in ports.values())


def _missing_names(row: set[str]) -> Iterator[str]:
    """Yield the names with a number that is missing in a row: `spine-07` between `spine-06` and `spine-08`.

    They may be millions: a switch of the fabric names itself.
    """
    for (head, tail), numbers in sorted(_series(row).items()):
        if len(numbers) < _FEWEST:
            continue
        width = min(numbers.values())
        for number in range(min(numbers), max(numbers)):
            if number not in numbers:
                yield f"{head}{number:0{width}}{tail}"


def _series(names: Iterable[str]) -> dict[tuple[str, str], dict[int, int]]:
    """Return the last numbers of names by the text before and after them, each with its number of digits."""
    series: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for name in names:
        match = _LAST_NUMBER.match(name)
        if match:
            series[match[1], match[3]][int(match[2])] = len(match[2])
    return dict(series)


def _explain(name: str, ports: list[int], neighbours: Mapping[str, Ports], row: set[str]) -> CablingExplanation:
    around = sorted(neighbours, key=natural_key)
    places = f"port{'s' if len(ports) > 1 else ''} {ranges(ports)}"
    like = sorted(row, key=natural_key)
    proven = len(row) > 1
    cause = f"{name} {'is not seen' if proven else 'may be absent'}: {places} of all {len(around)} switches "
    cause += f"{around[0]} … {around[-1]} are free, "
    cause += f"among those that lead to {like[0]} … {like[-1]}" if proven else f"before those that lead to {like[0]}"
    return CablingExplanation(
        kind=FaultKind.ABSENT_DEVICE if proven else FaultKind.NO_RULE,
        cause=f"{cause}, and no switch has its name{'' if proven else '; not provable without a plan'}",
        tie=not proven,
        action=f"{name}: check power first, then its cables to {shortened(around, 4)} {places}",
        ports=tuple(PortName(switch, str(port)) for switch in around for port in ports),
        devices=(name,),
        links=len(around) * len(ports),
    )
