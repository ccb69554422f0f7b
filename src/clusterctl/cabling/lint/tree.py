"""Problems of the whole tree: leaves with too few or uneven uplinks, and parts that no cable joins to the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.cabling.labels import shortened
from clusterctl.cabling.lint.plan_index import ListedPort, PlanIndex, PlanProblem, PlanRules, ProblemKind, lines
from clusterctl.cabling.lint.rails import leaf_rails
from clusterctl.fleet.natural_order import natural_key


@dataclass(frozen=True, slots=True)
class LintTree:
    """`tier` counts from the hosts (a leaf is 1); `down` and `up` are a switch's cables to lower and higher tiers."""

    tier: Mapping[str, int]
    down: Mapping[str, tuple[ListedPort, ...]]
    up: Mapping[str, tuple[ListedPort, ...]]


def tree_of(plan: PlanIndex) -> LintTree:
    """Return the tiers by the shortest way to a host; switches without one are in none."""
    tier = _tiers(plan)
    down: dict[str, tuple[ListedPort, ...]] = {}
    up: dict[str, tuple[ListedPort, ...]] = {}
    for switch, entries in plan.switches.items():
        own = tier.get(switch, 0)
        far = [(entry, tier.get(plan.far(entry, switch).device, 0)) for entry in entries]
        down[switch] = tuple(entry for entry, other in far if other < own)
        up[switch] = tuple(entry for entry, other in far if other > own)
    return LintTree(tier, down, up)


def _tiers(plan: PlanIndex) -> dict[str, int]:
    neighbours = {
        switch: {plan.far(entry, switch).device for entry in entries} for switch, entries in plan.switches.items()
    }
    front = sorted(switch for switch, others in neighbours.items() if others & plan.hosts)
    tier: dict[str, int] = {}
    level = 1
    while front:
        tier |= dict.fromkeys(front, level)
        above = set[str]().union(*(neighbours[switch] for switch in front))
        front = sorted(above - tier.keys() - plan.hosts)
        level += 1
    return tier


def tree_flaws(plan: PlanIndex, rules: PlanRules) -> Iterator[PlanProblem]:
    """Yield leaves with too few uplinks, and uneven uplinks. `island_flaws` yields leaves without any uplink."""
    tree = tree_of(plan)
    reported: set[str] = set()
    for leaf in sorted((s for s, tier in tree.tier.items() if tier == 1 and tree.up[s]), key=natural_key):
        down, up = tree.down[leaf], tree.up[leaf]
        if len(down) > len(up) * rules.oversubscription:
            reported.add(leaf)
            yield _oversubscribed(leaf, down, up, rules)
    yield from (problem for problem in _uneven_pods(plan, tree) if reported.isdisjoint(problem.subjects))
    yield from _uneven_tiers(tree)


def _oversubscribed(
    leaf: str, down: tuple[ListedPort, ...], up: tuple[ListedPort, ...], rules: PlanRules
) -> PlanProblem:
    ratio = len(down) / len(up)
    cause = (
        f"{leaf}: {len(down)} cables to hosts share {len(up)} uplinks, {ratio:.3g}:1, "
        f"where {rules.oversubscription:g}:1 is meant"
    )
    needed = -(-len(down) // rules.oversubscription)
    action = f"{leaf}: plan {needed - len(up):g} more uplinks, or allow it by --oversubscription {ratio:.3g}"
    return PlanProblem(ProblemKind.OVERSUBSCRIBED, cause, action, lines(up), (leaf,))


def _uneven_pods(plan: PlanIndex, tree: LintTree) -> Iterator[PlanProblem]:
    """Yield the leaves with an unusual number of links to the spines of their pod."""
    for pod in _pods(plan, tree):
        widths = _widths(plan, tree, pod)
        usual = Counter(width for leaf in widths.values() for width in leaf.values()).most_common(1)
        for leaf, numbers in widths.items():
            odd = {spine: width for spine, width in numbers.items() if width != usual[0][0]}
            if odd:
                yield _uneven_leaf(leaf, odd, usual[0][0], tree.up[leaf])


def _widths(plan: PlanIndex, tree: LintTree, pod: list[str]) -> dict[str, dict[str, int]]:
    """Return the numbers of links between each leaf and each spine of a pod."""
    leaves = [switch for switch in pod if tree.tier[switch] == 1]
    spines = [switch for switch in pod if tree.tier[switch] == 2]
    found = {leaf: Counter(plan.far(entry, leaf).device for entry in tree.up[leaf]) for leaf in leaves}
    return {leaf: {spine: found[leaf][spine] for spine in spines} for leaf in leaves}


def _uneven_tiers(tree: LintTree) -> Iterator[PlanProblem]:
    """Yield the switches above the leaves with another number of uplinks than most of their tier."""
    for level in range(2, max(tree.tier.values(), default=0)):
        switches = [switch for switch, tier in tree.tier.items() if tier == level]
        number = Counter(len(tree.up[switch]) for switch in switches).most_common(1)[0][0]
        for switch in sorted((s for s in switches if len(tree.up[s]) != number), key=natural_key):
            cause = f"{switch} has {len(tree.up[switch])} uplinks, where most switches of its tier have {number}"
            action = f"{switch}: give it as many uplinks as the others"
            entries = tree.up[switch] or tree.down[switch]
            yield PlanProblem(ProblemKind.UNEVEN_UPLINKS, cause, action, lines(entries), (switch,))


def _uneven_leaf(leaf: str, odd: Mapping[str, int], usual: int, up: tuple[ListedPort, ...]) -> PlanProblem:
    numbers = shortened(
        [f"{count} to {spine}" for spine, count in sorted(odd.items(), key=lambda item: natural_key(item[0]))]
    )
    cause = f"{leaf}: its links to the spines are uneven: {numbers}, where {usual} is usual"
    return PlanProblem(ProblemKind.UNEVEN_UPLINKS, cause, f"{leaf}: plan {usual} to each", lines(up), (leaf,))


def _pods(plan: PlanIndex, tree: LintTree) -> list[list[str]]:
    """Return the leaves and spines that are connected without core switches, pod by pod."""
    joined: dict[str, set[str]] = defaultdict(set)
    for leaf in (switch for switch, tier in tree.tier.items() if tier == 1):
        for entry in tree.up[leaf]:
            spine = plan.far(entry, leaf).device
            joined[leaf].add(spine)
            joined[spine].add(leaf)
    return components(joined)


def components(joined: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the connected parts of an undirected graph, each sorted, the largest first."""
    found, done = [], set[str]()
    for start in joined:
        if start in done:
            continue
        part, todo = [], [start]
        done.add(start)
        while todo:
            part.append(todo.pop())
            new = joined[part[-1]] - done
            done |= new
            todo.extend(new)
        found.append(sorted(part, key=natural_key))
    return sorted(found, key=len, reverse=True)


def island_flaws(plan: PlanIndex, rules: PlanRules) -> Iterator[PlanProblem]:
    """Yield the parts of a plan that must be one network; with `separate_rails`, the parts of each rail."""
    joined = {
        switch: {other for entry in entries if (other := plan.far(entry, switch).device) not in plan.hosts} - {switch}
        for switch, entries in plan.switches.items()
    }
    parts = components(joined)
    if not rules.separate_rails:
        yield from _islands(plan, parts, "the plan")
        return
    rails = leaf_rails(plan)
    by_rail: dict[str, list[list[str]]] = defaultdict(list)
    for part in parts:
        for rail in {rail for switch in part for rail in rails.get(switch, {})}:
            by_rail[rail].append(part)
    for rail, pieces in by_rail.items():
        yield from _islands(plan, pieces, f"rail {rail}")


def _islands(plan: PlanIndex, parts: list[list[str]], what: str) -> Iterator[PlanProblem]:
    if len(parts) < 2:
        return
    sizes = [_size(plan, part) for part in parts]
    if 2 * sizes[0][1] <= sum(adapters for _, adapters in sizes):
        networks = [f"{part[0]} with {_counted(size)}" for part, size in zip(parts, sizes, strict=True)]
        cause = f"{what} is {len(parts)} separate networks: {shortened(networks, 8)}"
        action = "join them by spines, or lint with --separate-rails if each rail shall be a network of its own"
        yield PlanProblem(ProblemKind.ISLAND, cause, action, _where(plan, parts), tuple(part[0] for part in parts))
        return
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        cause = f"no cable joins {shortened(part)}, with {_counted(size)}, to the rest of {what}"
        action = f"plan the uplinks of {shortened(part)}"
        yield PlanProblem(ProblemKind.ISLAND, cause, action, _where(plan, [part]), tuple(part))


def _counted(size: tuple[int, int]) -> str:
    switches, adapters = size
    return f"{switches} switch{'es' if switches != 1 else ''} and {adapters} adapter{'s' if adapters != 1 else ''}"


def _size(plan: PlanIndex, part: list[str]) -> tuple[int, int]:
    """Return the numbers of switches and host adapters of a part."""
    links = (plan.far(entry, switch) for switch in part for entry in plan.switches[switch])
    return len(part), sum(end.device in plan.hosts for end in links)


def _where(plan: PlanIndex, parts: list[list[str]]) -> tuple[str, ...]:
    """Return the first line of each part."""
    first: Mapping[int, str] = {number: plan.switches[part[0]][0].where for number, part in enumerate(parts[:50])}
    return tuple(first.values())
