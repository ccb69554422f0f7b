"""Adapters that all hosts of a leaf group lack, and half of the groups of the same name have: a leaf may be absent.

Without a plan this is no proof, as these hosts may have fewer adapters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind
from clusterctl.cabling.infer.rules import MIN_WITNESSES, HostCable, numbered
from clusterctl.cabling.labels import listed
from clusterctl.fleet.natural_order import natural_key


def lacking_adapters(cables: Iterable[HostCable], groups: Iterable[Mapping[str, str]]) -> Iterator[CablingExplanation]:
    """Yield one explanation for each group of hosts. `groups`: rail → leaf."""
    adapters: dict[str, set[str]] = defaultdict(set)
    hosts_of: dict[str, set[str]] = defaultdict(set)
    for cable in cables:
        adapters[cable.adapter.device].add(cable.adapter.port)
        hosts_of[cable.leaf.device].add(cable.adapter.device)
    members = [set().union(*(hosts_of[leaf] for leaf in group.values())) for group in groups]
    alike: dict[str, list[set[str]]] = defaultdict(list)
    for hosts in members:
        for name in {numbered(host)[0] for host in hosts}:
            alike[name].append(set().union(*(adapters[host] for host in hosts if numbered(host)[0] == name)))
    usual = {name: _usual(found) for name, found in alike.items()}
    for hosts in members:
        expected = set.intersection(*(usual[numbered(host)[0]] for host in hosts)) if hosts else set()
        lacking = expected.difference(*(adapters[host] for host in hosts))
        if lacking and len(hosts) >= MIN_WITNESSES:
            yield _explain(sorted(hosts, key=natural_key), sorted(lacking, key=natural_key))


def _usual(found: list[set[str]]) -> set[str]:
    """Return the adapters that at least half of the groups have."""
    count = Counter(adapter for adapters in found for adapter in adapters)
    return {adapter for adapter, having in count.items() if 2 * having >= len(found)}


def _explain(hosts: list[str], lacking: list[str]) -> CablingExplanation:
    return CablingExplanation(
        kind=FaultKind.NO_RULE,
        cause=f"all {len(hosts)} hosts {hosts[0]} … {hosts[-1]} lack {listed(lacking)}, which other hosts of that "
        "name have: a leaf may be absent; not provable without a plan",
        action="check the power of the leaf of these adapters, or give a wiring plan (--plan)",
        devices=tuple(hosts),
        links=len(hosts) * len(lacking),
        tie=True,
    )
