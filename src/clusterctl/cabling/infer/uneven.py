"""What suggests that a switch is absent where no name is missing, and what a fabric without a plan cannot show.

None of it is a proof: a site may have built its fabric so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.infer.absent import Switches, usual_width
from clusterctl.cabling.infer.rules import HostCable, numbered
from clusterctl.cabling.labels import ranges, shortened
from clusterctl.fleet.natural_order import natural_key

_ACTION = "check the power of the switches one tier up, or give a wiring plan (--plan)"


def fewer_uplinks(switches: Switches) -> Iterator[CablingExplanation]:
    """Yield one explanation for each pod with fewer switches above it than its like: the last of them may be absent.

    Pods are alike where their switches have names of the same kind, and more than half as many switches above.
    """
    above = {pod: _above(switches, pod) for pod in switches.pods}
    alike: dict[tuple[int, str], list[tuple[str, ...]]] = defaultdict(list)
    for pod in switches.pods:
        alike[switches.level.get(pod[0], -1), _kind(pod[0])].append(pod)
    for pods in alike.values():
        most = max(above[pod] for pod in pods)
        for pod in pods:
            if most > above[pod] > most / 2:
                yield _fewer(pod, above[pod], most)


def _above(switches: Switches, pod: tuple[str, ...]) -> int:
    """Return the usual number of switches that a switch of the pod leads up to."""
    counts = [len({port.device for port in switches.upward(switch).values()}) for switch in pod]
    return Counter(counts).most_common(1)[0][0]


def _kind(name: str) -> str:
    """Return a name without its digits: `pod2-leaf-07` and `pod1-leaf-01` are of the same kind."""
    return "".join(character for character in name if not character.isdigit())


def _fewer(pod: tuple[str, ...], count: int, most: int) -> CablingExplanation:
    names = sorted(pod, key=natural_key)
    return CablingExplanation(
        kind=FaultKind.NO_RULE,
        cause=f"{shortened(names, 4)} lead up to {count} switches, others of their kind to {most}: {most - count} may "
        "be absent; not provable without a plan",
        action=_ACTION,
        devices=tuple(names),
        links=len(names) * (most - count),
        tie=True,
    )


def last_ports_free(switches: Switches, counts: Mapping[str, int]) -> Iterator[CablingExplanation]:
    """Yield one explanation for each pod whose last ports alone are free, and would make as many links up as down.

    `counts` has the number of ports of each switch.
    """
    for pod in switches.pods:
        free = {_last_free(switches, switch, counts.get(switch, 0)) for switch in pod}
        ports = next(iter(free)) if len(free) == 1 else ()
        up = [switches.upward(switch) for switch in pod]
        width = usual_width(up)
        if ports and len(ports) % width == 0 and len(ports) < max(map(len, up)) + width:
            yield _last(pod, ports)


def _last_free(switches: Switches, switch: str, count: int) -> tuple[int, ...]:
    """Return the free ports, where they are the last ones and would make as many links up as there are down."""
    free = [number for number in range(1, count + 1) if not switches.is_used(switch, number)]
    up = len(switches.upward(switch))
    even = up + len(free) == count - up - len(free)
    return tuple(free) if free and free == list(range(count - len(free) + 1, count + 1)) and even else ()


def _last(pod: tuple[str, ...], ports: tuple[int, ...]) -> CablingExplanation:
    names = sorted(pod, key=natural_key)
    places = f"port{'s' if len(ports) > 1 else ''} {ranges(ports)}"
    return CablingExplanation(
        kind=FaultKind.NO_RULE,
        cause=f"only the last {places} of {shortened(names, 4)} are free, and would make as many links up as down: "
        "the last switch above may be absent; not provable without a plan",
        action=_ACTION,
        devices=tuple(names),
        links=len(names) * len(ports),
        tie=True,
    )


def missing_numbers(cables: Iterable[HostCable]) -> Iterator[str]:
    """Yield a text for the numbers that are missing among the adapters of all hosts: another use, or an absent leaf."""
    hosts: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for cable in cables:
        stem, number = numbered(cable.adapter.port)
        if number is not None:
            hosts[cable.adapter.device][stem].add(number)
    seen: dict[str, set[int]] = defaultdict(set)
    for stems in hosts.values():
        for stem, numbers in stems.items():
            seen[stem] |= numbers
    for stem, numbers in sorted(seen.items()):
        holes = [number for number in range(min(numbers), max(numbers)) if number not in numbers]
        if holes:
            names = ", ".join(f"{stem}{number}" for number in holes)
            yield f"no host has a cable in {names}: these adapters have another use, or their leaf is absent"
