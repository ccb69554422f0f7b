"""Who runs with whom next: suspects apart, each among proven partners; hosts of a doubtful path together; all others in
the classes of a plane until each has been in enough of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl_burnin.hunting.affine_plane import joined, paired, screening_groups
from clusterctl_burnin.hunting.model import Group, Part, Rules
from clusterctl_burnin.hunting.posterior import Case

CLEAN = 0.005
"""A host that has passed, and is bad with no more than this probability on any rail, is a proven partner."""
CONVICTED = 0.99
OF_THE_WORST = 0.1
"""Suspects are those that are at least a tenth as probable as the worst of their case."""


@dataclass(slots=True)
class RoundPlan:
    """Who can still be placed in this round: proven partners (those that wait longest first), and everyone else.

    `met`: for whom it matters, with whom it was in how many runs that went wrong.
    """

    free: set[str]
    clean: list[str]
    met: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    def place(self, group: Iterable[str]) -> None:
        members = tuple(sorted(group))
        self.groups.append(members)
        self.free.difference_update(members)
        self.clean = [name for name in self.clean if name in self.free]

    def partners(self, name: str, wanted: int) -> list[str]:
        """Those first with whom `name` has not failed before: what goes wrong with them is no fault of a path."""
        met = self.met.get(name, {})
        return sorted(self.clean, key=lambda partner: met.get(partner, 0))[:wanted]


def suspects(case: Case) -> dict[str, float]:
    """The hosts that have to be measured apart to decide the case, with their probabilities."""
    hosts = {part[0]: p for part, p in case.parts.items() if len(part) == 1 and p < CONVICTED}
    worst = max(hosts.values(), default=0.0)
    return {host: p for host, p in hosts.items() if p >= OF_THE_WORST * worst}


def doubtful_paths(case: Case) -> dict[Part, float]:
    """The paths that the case may be due to, where they are likelier than any of its hosts that are in doubt."""
    paths = {part: p for part, p in case.parts.items() if len(part) == 2}
    hosts = [p for part, p in case.parts.items() if len(part) == 1 and p < CONVICTED]
    if sum(paths.values()) <= sum(hosts):
        return {}
    worst = max(paths.values(), default=0.0)
    return {part: p for part, p in paths.items() if OF_THE_WORST * worst <= p}


def place_paths(plan: RoundPlan, paths: Mapping[Part, float], rules: Rules) -> None:
    """The hosts between which a path may be bad, in four blocks, two by two, so that the odds of a failure are even."""
    hosts = sorted({host for part in paths for host in part} & plan.free)
    if len(hosts) < 2:
        return
    if rules.most == 2:
        for path in sorted(paths, key=lambda path: (-paths[path], path)):
            if plan.free.issuperset(path):
                plan.place(path)
        return
    if len(hosts) == 2:
        splits: list[list[list[str]]] = [[hosts]]
    else:
        a, b, c, d = (hosts[at::4] for at in range(4))
        splits = [[a + b, c + d], [a + c, b + d], [a + d, b + c]]

    def covered(split: Sequence[Sequence[str]]) -> float:
        return sum(p for (one, other), p in paths.items() for block in split if one in block and other in block)

    for block in min(splits, key=lambda split: abs(covered(split) - 0.5)):
        members = [host for host in block if host in plan.free]
        padding = clean_partners(plan, members, rules.least - len(members))
        if len(members) > 1 and len(members) + len(padding) >= rules.least:
            plan.place([*members, *padding])


def clean_partners(plan: RoundPlan, members: Sequence[str], wanted: int) -> list[str]:
    return [name for name in plan.clean if name not in members][: max(0, wanted)]


def place_suspects(plan: RoundPlan, weights: Mapping[str, float], rules: Rules, size: int, number: int) -> None:
    """Place each suspect with up to `size` − 1 proven partners of its own. If proven nodes are too few for half of
    the suspects, place all free nodes in smaller groups.
    """
    waiting = sorted((name for name in weights if name in plan.free), key=lambda name: (-weights[name], name))
    plan.clean = [name for name in plan.clean if name not in weights]
    served = min(len(waiting), len(plan.clean) // (rules.least - 1))
    if 2 * served < len(waiting):
        smaller = max(rules.least, min(size, len(plan.free)) // 2)
        turn = number if rules.most == 2 else len(plan.free) + size
        for group in screening_groups(sorted(plan.free), turn, rules.least, smaller):
            plan.place(group)
        return
    each = min(size - 1, max(rules.least - 1, len(plan.clean) // max(1, served)))
    for name in waiting[:served]:
        plan.place([name, *plan.partners(name, each)])


def place_others(plan: RoundPlan, wanting: Iterable[str], everyone: Sequence[str], number: int, rules: Rules) -> None:
    """Place the nodes to screen by their class of the plane; add proven partners where a group is too small."""
    mine = set(wanting) & plan.free
    if not mine:
        return
    groups = screening_groups(everyone, number, rules.least, rules.most, rules.size)
    parts = [[name for name in group if name in mine] for group in groups]
    seated = {name for part in parts for name in part}
    parts += [[name] for name in sorted(mine - seated)]
    size = max((len(group) for group in groups), default=rules.least)
    left = set(mine)
    there = [part for part in parts if part]
    for group in paired(there) if rules.most == 2 else joined(there, rules.least, size):
        plan.place(group)
        left.difference_update(group)
    padding = clean_partners(plan, sorted(left), rules.least - len(left))
    if not plan.clean:  # where everything goes wrong, a partner that nothing is known of tells more than none
        padding = sorted(plan.free - left)[: rules.least - len(left)]
    if left and len(left) + len(padding) >= rules.least:
        plan.place([*left, *padding])
