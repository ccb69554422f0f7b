"""Parts of a plan that no cable joins. Hosts join nothing: each of their adapters is an end of the network."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from clusterctl.cabling.flaws import Flaw, FlawKind, PlanIndex, Rules
from clusterctl.cabling.lint_rails import leaf_rails
from clusterctl.cabling.lint_tree import components
from clusterctl.cabling.wording import shortened


def island_flaws(plan: PlanIndex, rules: Rules) -> Iterator[Flaw]:
    """Where rails are meant to be separate, each rail should be in one piece; else everything should."""
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


def _islands(plan: PlanIndex, parts: list[list[str]], what: str) -> Iterator[Flaw]:
    if len(parts) < 2:
        return
    sizes = [_size(plan, part) for part in parts]
    if 2 * sizes[0][1] <= sum(adapters for _, adapters in sizes):
        told = [f"{part[0]} with {_counted(size)}" for part, size in zip(parts, sizes, strict=True)]
        cause = f"{what} is {len(parts)} separate networks: {shortened(told, 8)}"
        action = "join them by spines, or lint with --separate-rails if each rail shall be a network of its own"
        yield Flaw(FlawKind.ISLAND, cause, action, _where(plan, parts), tuple(part[0] for part in parts))
        return
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        cause = f"no cable joins {shortened(part)}, with {_counted(size)}, to the rest of {what}"
        action = f"plan the uplinks of {shortened(part)}"
        yield Flaw(FlawKind.ISLAND, cause, action, _where(plan, [part]), tuple(part))


def _counted(size: tuple[int, int]) -> str:
    switches, adapters = size
    return f"{switches} switch{'es' if switches != 1 else ''} and {adapters} adapter{'s' if adapters != 1 else ''}"


def _size(plan: PlanIndex, part: list[str]) -> tuple[int, int]:
    """Switches and host adapters of a part."""
    links = (plan.far(entry, switch) for switch in part for entry in plan.switches[switch])
    return len(part), sum(end.device in plan.hosts for end in links)


def _where(plan: PlanIndex, parts: list[list[str]]) -> tuple[str, ...]:
    """The first line of each part."""
    first: Mapping[int, str] = {number: plan.switches[part[0]][0].where for number, part in enumerate(parts[:50])}
    return tuple(first.values())
