"""Flaws of single lines: ports, cables, serials and places that are used twice, and ports that no switch has."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from clusterctl.cabling.labels import listed, qm9700_cage, shortened
from clusterctl.cabling.lint.plan_index import ListedPort, PlanIndex, PlanProblem, PlanRules, ProblemKind, lines
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Location, Mac
from clusterctl.fleet.plain_numbers import is_number

_USUAL_RADIX = 64
_MODEL_PORTS = {"SB7": 36, "SB8": 36, "QM8": 40, "QM97": 64, "Q3": 144}
"""Ports by the beginning of the model's name (NVIDIA's data sheets; `M` before it is the part number's)."""


def port_flaws(plan: PlanIndex, rules: PlanRules) -> Iterator[PlanProblem]:
    """Yield ports used twice, cables listed twice, self-links, host to host, port numbers, serials, MACs, places."""
    yield from _used_twice(plan)
    yield from _ends(plan)
    yield from _numbers(plan, rules)
    yield from _serials(plan)
    yield from _macs(plan)
    yield from _places(plan)


def _used_twice(plan: PlanIndex) -> Iterator[PlanProblem]:
    """Yield the ports with several cables, and each cable that is listed several times."""
    users: dict[PortName, list[ListedPort]] = defaultdict(list)
    for entry in plan.listed:
        for end in set(entry.ends):
            users[end].append(entry)
    reported: set[frozenset[PortName]] = set()
    for port, entries in users.items():
        cables = {entry.cable.ends for entry in entries} if len(entries) > 1 else set()
        if len(cables) == 1 and not cables <= reported:
            reported |= cables
            yield _cable_twice(port, entries)
        elif len(cables) > 1:
            yield _port_twice(port, entries)


def _cable_twice(port: PortName, entries: list[ListedPort]) -> PlanProblem:
    source, destination = entries[0].ends
    cause = f"the cable {source} – {destination} is listed {len(entries)} times"
    return PlanProblem(ProblemKind.CABLE_TWICE, cause, "keep one of the lines", lines(entries), (str(port),))


def _port_twice(port: PortName, entries: list[ListedPort]) -> PlanProblem:
    peers = [str(end) for entry in entries for end in entry.ends if end != port]
    cause = f"{port} has {len(entries)} cables: to {shortened(peers)}"
    return PlanProblem(ProblemKind.PORT_TWICE, cause, f"give {port} one cable", lines(entries), (str(port),))


def _ends(plan: PlanIndex) -> Iterator[PlanProblem]:
    for entry in plan.listed:
        source, destination = entry.ends
        if source.device == destination.device:
            cause = f"{source} is cabled to its own device's {destination.port}"
            action = f"{source.device}: name the other device, or take the line out"
            yield PlanProblem(ProblemKind.SELF_LINK, cause, action, (entry.where,), (source.device,))
        elif source.device in plan.hosts and destination.device in plan.hosts:
            cause = f"the hosts {source} and {destination} are cabled to each other: no switch would see them"
            action = "cable each to its leaf; a switch's port is a number"
            yield PlanProblem(
                ProblemKind.HOST_TO_HOST, cause, action, (entry.where,), (source.device, destination.device)
            )


def _numbers(plan: PlanIndex, rules: PlanRules) -> Iterator[PlanProblem]:
    """Yield one flaw for each switch with ports that it does not have."""
    for switch, entries in plan.switches.items():
        radix, known = _radix(plan.models.get(switch, ""), rules)
        wrong: dict[str, ListedPort] = {}
        for entry in entries:
            port = plan.near(entry, switch).port
            if is_number(port) and not 1 <= int(port) <= radix:
                wrong[port] = entry
        if wrong:
            ports = shortened(sorted(wrong, key=int))
            cause = f"{switch} has ports 1 to {radix}, and the plan uses {ports}"
            action = "correct the port" if known else "correct the port, or give the number of ports by --radix"
            yield PlanProblem(ProblemKind.PORT_NUMBER, cause, action, lines(wrong.values()), (switch,))


def _radix(model: str, rules: PlanRules) -> tuple[int, bool]:
    """Return ports of a switch, and whether that is known."""
    if rules.radix is not None:
        return rules.radix, True
    name = model.upper().removeprefix("M")
    for beginning, ports in _MODEL_PORTS.items():
        if name.startswith(beginning):
            return ports, True
    return _USUAL_RADIX, False


def _serials(plan: PlanIndex) -> Iterator[PlanProblem]:
    """Yield duplicate serials. A splitter cable has two links and one serial: both in one cage of a switch."""
    by_serial: dict[str, list[ListedPort]] = defaultdict(list)
    for entry in plan.listed:
        if entry.cable.serial:
            by_serial[entry.cable.serial].append(entry)
    for serial, entries in by_serial.items():
        if len(entries) > 2 or (len(entries) == 2 and not _one_splitter(entries[0], entries[1])):
            cables = listed([f"{entry.cable.source} – {entry.cable.destination}" for entry in entries[:4]])
            cause = f"the cable serial {serial} stands on {len(entries)} cables: {cables}"
            action = "read the serials on these cables again"
            yield PlanProblem(ProblemKind.SERIAL_TWICE, cause, action, lines(entries), (serial,))


def _one_splitter(first: ListedPort, second: ListedPort) -> bool:
    return bool(_cages(first) & _cages(second))


def _cages(entry: ListedPort) -> set[tuple[str, int]]:
    """Return the twin-port cages at both ends: ports 2n - 1 and 2n share cage n."""
    return {(end.device, (int(end.port) + 1) // 2) for end in entry.ends if is_number(end.port)}


def _macs(plan: PlanIndex) -> Iterator[PlanProblem]:
    ports: dict[Mac, set[PortName]] = defaultdict(set)
    for draft in plan.drafts:
        for port, mac in draft.macs.items():
            ports[mac].add(port)
    for mac, same in ports.items():
        if len(same) > 1:
            names = [str(port) for port in sorted(same)]
            entries = [entry for entry in plan.listed if same & set(entry.ends)]
            cause = f"the MAC address {mac} is that of {listed(names)}"
            action = "read the addresses of these ports again"
            yield PlanProblem(ProblemKind.MAC_TWICE, cause, action, lines(entries), tuple(names))


def _places(plan: PlanIndex) -> Iterator[PlanProblem]:
    """Yield one flaw for each device, with the first line of each place."""
    for device, places in _places_of(plan).items():
        if len(places) > 1:
            cause = f"{device} stands in {listed(str(place) for place in places)}"
            action = "give each device one rack and unit"
            yield PlanProblem(ProblemKind.TWO_PLACES, cause, action, tuple(places.values()), (device,))


def _places_of(plan: PlanIndex) -> Mapping[str, dict[Location, str]]:
    found: dict[str, dict[Location, str]] = defaultdict(dict)
    for draft in plan.drafts:
        for placement in draft.placements:
            found[placement.device].setdefault(placement.location, draft.at(placement.line))
    return found


_TWIN_LABEL = re.compile(r"[0-9]+/[12]$")
_TWIN_MODELS = ("QM97", "Q3")


def cage_flaws(plan: PlanIndex) -> Iterator[PlanProblem]:
    """Yield for each switch labels used twice, labels of another port, cages with only one port to a host."""
    for switch, entries in plan.switches.items():
        labels = {plan.near(e, switch): e for e in entries if e.cable.cage and e.cable.labelled.device == switch}
        yield from _labelled_twice(switch, list(labels.values()))
        twin = [entry for entry in labels.values() if _TWIN_LABEL.match(entry.cable.cage)]
        yield from _mislabelled(switch, twin)
        if twin or plan.models.get(switch, "").upper().removeprefix("M").startswith(_TWIN_MODELS):
            yield from _split(plan, switch, entries)


def _labelled_twice(switch: str, labelled: list[ListedPort]) -> Iterator[PlanProblem]:
    counts = Counter(entry.cable.cage for entry in labelled)
    twice = sorted((cage for cage, count in counts.items() if count > 1), key=natural_key)
    if twice:
        entries = [entry for entry in labelled if entry.cable.cage in twice]
        cause = f"{switch}: several ports are labelled {shortened([f'cage {cage}' for cage in twice])}"
        action = "give each port the label that is printed at it"
        yield PlanProblem(ProblemKind.CAGE_TWICE, cause, action, lines(entries), (switch,))


def _mislabelled(switch: str, twin: list[ListedPort]) -> Iterator[PlanProblem]:
    """Yield the labels against the rule, where most labels follow it; else the switch is numbered otherwise."""
    wrong = [e for e in twin if is_number(e.cable.labelled.port) and e.cable.cage != _rule(e)]
    if wrong and 2 * len(wrong) < len(twin):
        ports = [f"port {e.cable.labelled.port} is in cage {_rule(e)}, not {e.cable.cage}" for e in wrong]
        action = "correct the cage or the port"
        yield PlanProblem(ProblemKind.CAGE_LABEL, f"{switch}: {shortened(ports)}", action, lines(wrong), (switch,))


def _rule(entry: ListedPort) -> str:
    return qm9700_cage(int(entry.cable.labelled.port))


def _split(plan: PlanIndex, switch: str, entries: tuple[ListedPort, ...]) -> Iterator[PlanProblem]:
    cages: dict[int, list[ListedPort]] = defaultdict(list)
    for entry in entries:
        port = plan.near(entry, switch).port
        if is_number(port):
            cages[(int(port) + 1) // 2].append(entry)
    split = {
        cage: pair
        for cage, pair in cages.items()
        if len({plan.far(entry, switch).device in plan.hosts for entry in pair}) > 1
    }
    if split:
        names = shortened([str(cage) for cage in sorted(split)])
        cause = f"{switch}: one port of cage {names} goes to a host, the other to a switch"
        action = "let both ports of a cage go the same way: they share one transceiver"
        found = [entry for pair in split.values() for entry in pair]
        yield PlanProblem(ProblemKind.CAGE_SPLIT, cause, action, lines(found), (switch,))
