"""Flaws of twin-port cages: ports 2n - 1 and 2n of such a switch share cage n and one transceiver."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from clusterctl.cabling.flaws import Flaw, FlawKind, Listed, PlanIndex, lines
from clusterctl.cabling.wording import qm9700_cage, shortened
from clusterctl.fleet.natural import natural

_TWIN_LABEL = re.compile(r"[0-9]+/[12]$")
_TWIN_MODELS = ("QM97", "Q3")


def cage_flaws(plan: PlanIndex) -> Iterator[Flaw]:
    """For each switch: labels used twice, labels that are another port's, cages of which half goes to hosts."""
    for switch, entries in plan.switches.items():
        labels = {plan.near(e, switch): e for e in entries if e.cable.cage and e.cable.labelled.device == switch}
        yield from _labelled_twice(switch, list(labels.values()))
        twin = [entry for entry in labels.values() if _TWIN_LABEL.match(entry.cable.cage)]
        yield from _mislabelled(switch, twin)
        if twin or plan.models.get(switch, "").upper().removeprefix("M").startswith(_TWIN_MODELS):
            yield from _split(plan, switch, entries)


def _labelled_twice(switch: str, labelled: list[Listed]) -> Iterator[Flaw]:
    counts = Counter(entry.cable.cage for entry in labelled)
    twice = sorted((cage for cage, count in counts.items() if count > 1), key=natural)
    if twice:
        entries = [entry for entry in labelled if entry.cable.cage in twice]
        cause = f"{switch}: several ports are labelled {shortened([f'cage {cage}' for cage in twice])}"
        action = "give each port the label that stands beside it"
        yield Flaw(FlawKind.CAGE_TWICE, cause, action, lines(entries), (switch,))


def _mislabelled(switch: str, twin: list[Listed]) -> Iterator[Flaw]:
    """Where most labels follow the rule, the others are wrong; where they do not, the switch is numbered otherwise."""
    wrong = [e for e in twin if e.cable.labelled.port.isdigit() and e.cable.cage != _rule(e)]
    if wrong and 2 * len(wrong) < len(twin):
        told = [f"port {e.cable.labelled.port} is in cage {_rule(e)}, not {e.cable.cage}" for e in wrong]
        action = "correct the cage or the port"
        yield Flaw(FlawKind.CAGE_LABEL, f"{switch}: {shortened(told)}", action, lines(wrong), (switch,))


def _rule(entry: Listed) -> str:
    return qm9700_cage(int(entry.cable.labelled.port))


def _split(plan: PlanIndex, switch: str, entries: tuple[Listed, ...]) -> Iterator[Flaw]:
    cages: dict[int, list[Listed]] = defaultdict(list)
    for entry in entries:
        port = plan.near(entry, switch).port
        if port.isdigit():
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
        yield Flaw(FlawKind.CAGE_SPLIT, cause, action, lines(found), (switch,))
