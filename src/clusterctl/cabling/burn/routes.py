"""Which way a packet takes: live forwarding tables laid over the fabric's links.

Switches and directed links are numbered, so that the ways of all pairs of a large fabric are followed in seconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.names import name_ports
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.fabric.topology import NO_ROUTE, DeviceKind, Fabric, ForwardingTables, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.node import Guid

NOWHERE = -1
_SAME_TIME = "read dump_fts and ibnetdiscover again, one right after the other"


@dataclass(frozen=True, slots=True)
class DirectedLink:
    """One direction of a cable: what leaves by `source` arrives at `target`."""

    source: PortId
    target: PortId


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host's adapter port that the tables can address; `name.device` is the host. `leaf` is the number of its switch,
    `out` and `into` of its two directed links.
    """

    port: PortId
    name: PortName
    lid: int
    leaf: int
    out: int
    into: int

    @property
    def host(self) -> str:
        return self.name.device


@dataclass(frozen=True, slots=True)
class Routes:
    """Tables, laid over the links.

    links        all directed links between devices; their places here are their numbers
    tails, heads per directed link: number of the switch that it leaves, and arrives at; NOWHERE where that is a host
    switches     node GUIDs; their places here are their numbers
    tables       per switch: out port by LID
    exits        per switch: number of the directed link by out port, NOWHERE without a cable
    entries      per switch: numbers of the directed links that arrive there
    unaddressed  cabled host ports for which no table has a LID
    names        of every cabled port
    """

    links: tuple[DirectedLink, ...]
    tails: tuple[int, ...]
    heads: tuple[int, ...]
    switches: tuple[Guid, ...]
    tables: tuple[bytes, ...]
    exits: tuple[tuple[int, ...], ...]
    entries: tuple[tuple[int, ...], ...]
    endpoints: tuple[Endpoint, ...]
    unaddressed: tuple[PortId, ...]
    names: Mapping[PortId, PortName]

    def way(self, source: Endpoint, target: Endpoint) -> tuple[int, ...]:
        """Return the numbers of the directed links from `source` to `target`, in order; empty without a way."""
        onward = self.onward(source.leaf, target)
        return (source.out, *onward) if onward else ()

    def onward(self, switch: int, target: Endpoint) -> tuple[int, ...]:
        """Return the rest of the way, from the switch on; empty where packets are dropped or loop."""
        way: list[int] = []
        lid, heads, exits, tables = target.lid, self.heads, self.exits, self.tables
        for _ in self.switches:
            link = exits[switch][tables[switch][lid]]
            if link == NOWHERE:
                return ()
            way.append(link)
            switch = heads[link]
            if switch == NOWHERE:
                return tuple(way) if link == target.into else ()
        return ()

    def label(self, link: int) -> str:
        """Return `leaf-1 port 33 → spine-2 port 1`."""
        ends = self.links[link]
        return f"{self.names[ends.source]} → {self.names[ends.target]}"


def lay_routes(fabric: Fabric, tables: ForwardingTables) -> Routes:
    """Return the routes. Raise ParseError where the tables are of another fabric, or of another time."""
    _check_same_fabric(fabric, tables)
    switches = tuple(sorted(tables.tables))
    number = {guid: index for index, guid in enumerate(switches)}
    links = tuple(_directed(fabric))
    heads = tuple(number.get(link.target.guid, NOWHERE) for link in links)
    leaving = {link.source: index for index, link in enumerate(links)}
    names = name_ports(fabric, WiringPlan((), frozenset()), {}).ports
    lids = _lids_of_ports(fabric, tables)
    ports = dict(_adapter_ports(fabric))
    addressed = [port for port in ports if port in lids]
    return Routes(
        links=links,
        tails=tuple(number.get(link.source.guid, NOWHERE) for link in links),
        heads=heads,
        switches=switches,
        tables=tuple(tables.tables[guid] for guid in switches),
        exits=tuple(tuple(leaving.get(PortId(guid, n), NOWHERE) for n in range(NO_ROUTE + 1)) for guid in switches),
        entries=_arriving(heads, len(switches)),
        endpoints=tuple(
            Endpoint(port, names[port], lids[port], number[ports[port].guid], leaving[port], leaving[ports[port]])
            for port in addressed
        ),
        unaddressed=tuple(port for port in ports if port not in lids),
        names=names,
    )


def _check_same_fabric(fabric: Fabric, tables: ForwardingTables) -> None:
    seen = {guid for guid, device in fabric.devices.items() if device.kind is DeviceKind.SWITCH}
    for guid in sorted(seen - tables.tables.keys()):
        message = f"no forwarding table of switch {fabric.devices[guid].description} [{guid}]"
        raise ParseError(message, where="forwarding tables", remedy=_SAME_TIME)
    for guid in sorted(tables.tables.keys() - seen):
        raise ParseError(f"switch {guid} is not in the fabric", where="forwarding tables", remedy=_SAME_TIME)


def _directed(fabric: Fabric) -> Iterator[DirectedLink]:
    for link in sorted(fabric.cables(), key=lambda link: (link.a, link.b)):
        yield DirectedLink(link.a, link.b)
        yield DirectedLink(link.b, link.a)


def _arriving(heads: tuple[int, ...], switches: int) -> tuple[tuple[int, ...], ...]:
    entries: list[list[int]] = [[] for _ in range(switches)]
    for link, head in enumerate(heads):
        if head != NOWHERE:
            entries[head].append(link)
    return tuple(tuple(numbers) for numbers in entries)


def _adapter_ports(fabric: Fabric) -> Iterator[tuple[PortId, PortId]]:
    """Yield each adapter port that is cabled to a switch, and the port at the other end."""
    for link in sorted(fabric.cables(), key=lambda link: (link.a, link.b)):
        for near, far in ((link.a, link.b), (link.b, link.a)):
            kinds = fabric.devices[near.guid].kind, fabric.devices[far.guid].kind
            if kinds == (DeviceKind.CA, DeviceKind.SWITCH):
                yield near, far


def _lids_of_ports(fabric: Fabric, tables: ForwardingTables) -> dict[PortId, int]:
    """Return the LID of each port, the lowest of several (LMC). A device's port GUIDs follow its cabled ports."""
    lids: dict[Guid, int] = {}
    for lid in sorted(tables.lids, reverse=True):
        lids[tables.lids[lid]] = lid
    cabled: dict[Guid, list[PortId]] = defaultdict(list)
    for link in fabric.links:
        for port in (link.a, link.b):
            cabled[port.guid].append(port)
    found: dict[PortId, int] = {}
    for guid, ports in cabled.items():
        own = fabric.devices[guid].port_guids
        if len(own) == len(ports):
            found |= {
                port: lids[own_guid] for port, own_guid in zip(sorted(ports), own, strict=True) if own_guid in lids
            }
    return found


Reachable = Mapping[int, Sequence[Endpoint]]
"""Number of a directed link → the destinations of packets from other hosts that cross it. Without unused links."""


def reachable_links(routes: Routes) -> Reachable:
    """Return every link on the way from any host to any other. A link that leaves a host has one target for all."""
    hosts = _hosts_by_leaf(routes)
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


def _hosts_by_leaf(routes: Routes) -> dict[int, set[str]]:
    hosts: dict[int, set[str]] = defaultdict(set)
    for end in routes.endpoints:
        hosts[end.leaf].add(end.host)
    return hosts


def _toward(routes: Routes, target: Endpoint, leaves: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return the links between the leaves and the target; and the leaves from which packets arrive."""
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
