"""Problems of rails: in a rail-optimised fabric a leaf carries one rail, the same adapter of each of its hosts.

The rail of an adapter is that of the plan's column `rail`, else the adapter's name as a mere label. The number in
`mlx5_3` is never the rail's number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from clusterctl.cabling.labels import listed
from clusterctl.cabling.lint.plan_index import ListedPort, PlanIndex, PlanProblem, ProblemKind, lines
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.plain_numbers import is_number

_SHOWN = 8
"""Adapters of one host that a finding lists."""
_FEW = 4
"""A leaf of which at most one in four cables is on another rail than the rest is a leaf with wrong cables."""
_ADAPTER_DEVICE = re.compile(r"(.+)-([0-9]+)$")

Rail = str


def rail_of(entry: ListedPort, adapter: PortName) -> Rail:
    """Return the rail; empty where it is unknown: a host with mere port numbers that is not called `node001-3`."""
    if entry.cable.rail:
        return entry.cable.rail
    if not is_number(adapter.port):
        return adapter.port
    match = _ADAPTER_DEVICE.match(adapter.device)
    return match[2] if match else ""


def host_of(adapter: PortName) -> str:
    """Return `node001`, also for the `.topo`'s device `node001-3`."""
    match = _ADAPTER_DEVICE.match(adapter.device) if is_number(adapter.port) else None
    return match[1] if match else adapter.device


def leaf_rails(plan: PlanIndex) -> Mapping[str, Mapping[Rail, list[ListedPort]]]:
    """Return the cables to hosts by leaf and rail, without leaves of which no rail is known."""
    found: dict[str, dict[Rail, list[ListedPort]]] = {}
    for switch, entries in plan.switches.items():
        rails: dict[Rail, list[ListedPort]] = defaultdict(list)
        for entry in entries:
            adapter = plan.far(entry, switch)
            rail = rail_of(entry, adapter) if adapter.device in plan.hosts else ""
            if rail:
                rails[rail].append(entry)
        if rails:
            found[switch] = rails
    return found


def rail_flaws(plan: PlanIndex) -> Iterator[PlanProblem]:
    """Yield one problem where most leaves are mixed; else one for each mixed leaf, and each host on wrong rails."""
    leaves = leaf_rails(plan)
    mixed = {leaf: rails for leaf, rails in leaves.items() if len(rails) > 1}
    if 2 * len(mixed) > len(leaves):
        yield _no_rail_plan(mixed, len(leaves))
        return
    strays: dict[str, list[tuple[ListedPort, str, Rail]]] = defaultdict(list)
    for leaf, rails in mixed.items():
        main, others = _main_rail(rails)
        if len(others) * _FEW > len(others) + len(rails[main]):
            yield _mixed_leaf(leaf, rails)
        else:
            for entry in others:
                strays[host_of(plan.far(entry, leaf))].append((entry, leaf, main))
    for host, found in strays.items():
        yield _stray_host(plan, host, found)


def _main_rail(rails: Mapping[Rail, list[ListedPort]]) -> tuple[Rail, list[ListedPort]]:
    """Return the rail with the most cables of a leaf, and the cables of its other rails."""
    main = max(rails, key=lambda rail: len(rails[rail]))
    return main, [entry for rail, entries in rails.items() if rail != main for entry in entries]


def _no_rail_plan(mixed: Mapping[str, Mapping[Rail, list[ListedPort]]], leaves: int) -> PlanProblem:
    entries = [entries[0] for rails in mixed.values() for entries in rails.values()]
    cause = f"{len(mixed)} of {leaves} leaves carry several rails: this is no rail-optimised plan"
    action = "put each rail on its own leaves, name the rails in a column `rail`, or lint with --any-rail"
    return PlanProblem(ProblemKind.MIXED_RAILS, cause, action, lines(entries), tuple(mixed))


def _mixed_leaf(leaf: str, rails: Mapping[Rail, list[ListedPort]]) -> PlanProblem:
    numbers = [f"{len(rails[rail])} cables of rail {rail}" for rail in sorted(rails, key=natural_key)]
    entries = [entries[0] for entries in rails.values()]
    action = f"{leaf}: keep one rail on it, or name the rails in a column `rail`"
    return PlanProblem(ProblemKind.MIXED_RAILS, f"{leaf} carries {listed(numbers)}", action, lines(entries), (leaf,))


def _stray_host(plan: PlanIndex, host: str, found: list[tuple[ListedPort, str, Rail]]) -> PlanProblem:
    parts = []
    for entry, leaf, main in found:
        adapter = plan.far(entry, leaf)
        rail = rail_of(entry, adapter)
        name = adapter.port if rail == adapter.port else f"{adapter} (rail {rail})"
        parts.append(f"{name} is on {plan.near(entry, leaf)}, where its neighbours are rail {main}")
    leaves = tuple(dict.fromkeys(leaf for _, leaf, _ in found))
    action = (
        f"{host}: exchange the leaves of these adapters" if len(found) > 1 else f"{host}: put it on its own rail's leaf"
    )
    where = lines(entry for entry, _, _ in found)
    return PlanProblem(ProblemKind.WRONG_RAIL, f"{host}: {'; '.join(parts[:_SHOWN])}", action, where, (host, *leaves))
