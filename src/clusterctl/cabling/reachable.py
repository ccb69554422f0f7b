"""Which directed links carry packets between hosts at all, under given forwarding tables, and for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from clusterctl.cabling.routes import NOWHERE, Endpoint, Routes

Reachable = Mapping[int, Sequence[Endpoint]]
"""Number of a directed link → whom packets from other hosts cross it to. What no route crosses is not in it."""


def reachable_links(routes: Routes) -> Reachable:
    """Every link on the way from any host to any other. For a link that leaves a host one target stands for all."""
    hosts: dict[int, set[str]] = defaultdict(set)
    for end in routes.endpoints:
        hosts[end.leaf].add(end.host)
    crossed: dict[int, list[Endpoint]] = defaultdict(list)
    reached: dict[int, dict[str, Endpoint]] = defaultdict(dict)
    for target in routes.endpoints:
        others = [leaf for leaf, names in hosts.items() if names != {target.host}]
        links, leaves = _toward(routes, target, others)
        for link in links:
            crossed[link].append(target)
        for leaf in leaves:
            if len(reached[leaf]) < 2:  # two hosts are enough: a sender is not both of them
                reached[leaf][target.host] = target
    for sender in routes.endpoints:
        crossed[sender.out] += [end for host, end in reached[sender.leaf].items() if host != sender.host][:1]
    return {link: targets for link, targets in crossed.items() if targets}


def _toward(routes: Routes, target: Endpoint, leaves: Iterable[int]) -> tuple[list[int], list[int]]:
    """The links between the leaves and the target; and the leaves from which packets arrive."""
    links: list[int] = []
    arrives: dict[int, bool] = {}
    exits, tables, heads, lid = routes.exits, routes.tables, routes.heads, target.lid
    for leaf in leaves:
        switch, way, passed = leaf, [], []
        while switch not in arrives:
            arrives[switch] = False  # until it is known; met again on this very way it is a loop
            link = exits[switch][tables[switch][lid]]
            passed.append(switch)
            way.append(link)
            if link == NOWHERE or heads[link] == NOWHERE:
                arrives[switch] = link == target.into
                break
            switch = heads[link]
        if arrives[switch]:
            links += way
            arrives.update(dict.fromkeys(passed, True))
    return links, [leaf for leaf in leaves if arrives[leaf]]
