"""Hosts that number their adapters in another order, under the names of the plan: each host by all its cables.

Several hosts with one order prove that order. One host proves nothing: its names or its cables may be exchanged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.natural_order import natural_key

_AGREEING = 3
"""Hosts with one order from which on the order is proven."""
_SEVERAL = 3
"""Adapters in another place from which on names may be the cause; two are the usual error of a technician."""

Peers = Mapping[PortName, PortName]


@dataclass(frozen=True, slots=True)
class NameMap:
    """`names`: adapter name on `hosts` → adapter name in the plan.

    `proven`: enough hosts agree, or the order of the names agrees; else only the cables themselves suggest the map.
    """

    hosts: tuple[str, ...]
    names: Mapping[str, str]
    proven: bool


@dataclass(frozen=True, slots=True)
class _Order:
    """`names`: adapter → the adapter of the same host whose planned cable it has; `count` adapters are cabled."""

    names: Mapping[str, str]
    count: int

    @property
    def changed(self) -> dict[str, str]:
        return {name: planned for name, planned in self.names.items() if name != planned}

    @property
    def permuted(self) -> bool:
        """Return whether several adapters are exchanged with each other, and with no other host's."""
        distinct = len(set(self.names.values())) == len(self.names) == self.count
        return distinct and len(self.changed) >= _SEVERAL

    def shows(self, other: _Order) -> bool:
        """Return whether most cables of this host follow the other order, more than follow the plan's."""
        alike = sum(other.names.get(name) == planned for name, planned in self.names.items())
        return 2 * alike > self.count and alike > len(self.names) - len(self.changed)


def orders(seen: Mapping[str, Mapping[str, PortName]], peers: Peers) -> list[NameMap]:
    """Return the maps of hosts with another order. `seen`: the far ends of the adapters of hosts with planned names."""
    found = {host: _order(host, adapters, peers) for host, adapters in seen.items()}
    whole: dict[tuple[tuple[str, str], ...], list[str]] = defaultdict(list)
    for host, order in found.items():
        if order.permuted:
            whole[tuple(sorted(order.names.items()))].append(host)
    maps = []
    for hosts in sorted(whole.values(), key=len, reverse=True):
        order = _order(hosts[0], seen[hosts[0]], peers)
        members = [host for host, other in found.items() if other.shows(order)]
        proven = len(members) >= _AGREEING
        members = members if proven else [host for host in hosts if host in found]
        for host in members:
            del found[host]
        if members:
            maps.append(_map(members, order, proven=proven))
    return maps


def _order(host: str, adapters: Mapping[str, PortName], peers: Peers) -> _Order:
    planned = {name: peers.get(far) for name, far in adapters.items()}
    names = {name: port.port for name, port in planned.items() if port is not None and port.device == host}
    return _Order(names, len(adapters))


def _map(hosts: Iterable[str], order: _Order, *, proven: bool) -> NameMap:
    return NameMap(tuple(sorted(hosts, key=natural_key)), order.changed, proven=proven)
