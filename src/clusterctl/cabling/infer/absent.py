"""Switches that are absent from a fabric without a plan: a gap in names, and the same gap in ports of their neighbours.

Both gaps must exist: a name alone may be unused, and ports alone may be spare. The first and the last
switch of a row leave no gap, so their absence is not noticed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.actions import Ends
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.labels import ranges, shortened
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key

_LAST_NUMBER = re.compile(r"(.*?)(\d+)(\D*)$")
_FEWEST = 3
"""Switches of a row, and neighbours with the same gap, from which on a gap proves something."""


def absent_switches(
    trunks: Iterable[Ends], pods: Iterable[tuple[str, ...]], level: Mapping[str, int]
) -> Iterator[CablingExplanation]:
    """Yield one explanation for each absent switch.

    `pods` are groups of lower switches cabled alike; `level` is the tier of each switch.
    """
    far = _far_ports(trunks)
    found: set[str] = set()
    for pod in pods:
        for neighbours, row in _rows(pod, far, level):
            for name, ports in _gaps(neighbours, row):
                if name not in far and name not in found:
                    found.add(name)
                    yield _explain(name, ports, neighbours, row)


_Ports = Mapping[int, PortName]
"""A switch's port numbers, and the far ends of their cables."""


def _far_ports(trunks: Iterable[Ends]) -> dict[str, dict[int, PortName]]:
    far: dict[str, dict[int, PortName]] = defaultdict(dict)
    for ends in trunks:
        a, b = sorted(ends)
        far[a.device][a.number], far[b.device][b.number] = b, a
    return far


def _rows(
    pod: tuple[str, ...], far: Mapping[str, _Ports], level: Mapping[str, int]
) -> Iterator[tuple[dict[str, _Ports], set[str]]]:
    """Yield the upper and the lower switches of a pod, each with the ports of the others that lead to them."""
    lower = set(pod)
    near = {port.device for low in pod for port in far[low].values()}
    upper = {high for high in near if level.get(high, -1) == level.get(pod[0], -1) + 1}
    yield {low: _leading_to(upper, far[low]) for low in pod}, upper
    yield {high: _leading_to(lower, far[high]) for high in upper}, lower


def _leading_to(row: set[str], ports: _Ports) -> _Ports:
    return {number: port for number, port in ports.items() if port.device in row}


def _gaps(neighbours: Mapping[str, _Ports], row: set[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield name and ports of each switch that both gaps show."""
    if len(row) < _FEWEST or len(neighbours) < _FEWEST:
        return
    used = Counter(number for ports in neighbours.values() for number in ports)
    free = [number for number in range(min(used), max(used) + 1) if not used[number]]
    width = _usual_width(neighbours.values())
    names = list(_missing_names(row))
    if free and len(free) == width * len(names):
        for place, name in enumerate(names):
            yield name, free[place * width : (place + 1) * width]


def _usual_width(neighbours: Iterable[_Ports]) -> int:
    """Return the usual number of cables between two switches."""
    return Counter(count for ports in neighbours for count in _links(ports).values()).most_common(1)[0][0]


def _links(ports: _Ports) -> Counter[str]:
    return Counter(port.device for port in ports.values())


def _missing_names(row: set[str]) -> Iterator[str]:
    """Yield the names with a number that is missing in a row: `spine-07` between `spine-06` and `spine-08`."""
    series: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for name in row:
        match = _LAST_NUMBER.match(name)
        if match:
            series[match[1], match[3]][int(match[2])] = len(match[2])
    for (head, tail), numbers in sorted(series.items()):
        if len(numbers) < _FEWEST:
            continue
        width = min(numbers.values())
        for number in range(min(numbers), max(numbers)):
            if number not in numbers:
                yield f"{head}{number:0{width}}{tail}"


def _explain(name: str, ports: list[int], neighbours: Mapping[str, _Ports], row: set[str]) -> CablingExplanation:
    around = sorted(neighbours, key=natural_key)
    places = f"port{'s' if len(ports) > 1 else ''} {ranges(ports)}"
    like = sorted(row, key=natural_key)
    return CablingExplanation(
        kind=FaultKind.ABSENT_DEVICE,
        cause=f"{name} is not seen: {places} of all {len(around)} switches {around[0]} … {around[-1]} are free, "
        f"among those that lead to {like[0]} … {like[-1]}, and no switch has its name",
        action=f"{name}: check power first, then its cables to {shortened(around, 4)} {places}",
        ports=tuple(PortName(switch, str(port)) for switch in around for port in ports),
        devices=(name,),
        links=len(around) * len(ports),
    )
