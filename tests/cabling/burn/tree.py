"""A two-tier fabric with forwarding tables that spread destinations over the spines, as a fat tree's do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from clusterctl.fleet.fabric.topology import NO_ROUTE, Device, DeviceKind, Fabric, ForwardingTables, Link, PortId
from clusterctl.fleet.node import Guid

SWITCH, ADAPTER = 0x100, 0x1000


def guid(number: int) -> Guid:
    return Guid(f"{number:016x}")


@dataclass
class Tree:
    """`hosts` per leaf, and as many spines, so that nothing is oversubscribed. Host h of leaf l is `node{l*hosts+h}`,
    on port h+1 of its leaf; spine s is on port hosts+s+1, and has leaf l on its port l+1. A host's LID is its number
    plus 1. Change `exits` (switch → LID → port), or name links by leaf and spine in `cut`.
    """

    leaves: int = 4
    hosts: int = 4
    cut: Iterable[tuple[int, int]] = ()
    exits: dict[Guid, dict[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        count = self.leaves * self.hosts
        self.exits = {self.leaf(number): {} for number in range(self.leaves)}
        self.exits |= {self.spine(number): {} for number in range(self.hosts)}
        for host in range(count):
            home, place = divmod(host, self.hosts)
            for number in range(self.leaves):
                self.exits[self.leaf(number)][host + 1] = place + 1 if number == home else self.hosts + place + 1
            for number in range(self.hosts):
                self.exits[self.spine(number)][host + 1] = home + 1

    def leaf(self, number: int) -> Guid:
        return guid(SWITCH + number)

    def spine(self, number: int) -> Guid:
        return guid(SWITCH + self.leaves + number)

    def adapter(self, host: int) -> Guid:
        return guid(ADAPTER + 16 * host)

    def fabric(self) -> Fabric:
        names = {self.leaf(n): f"leaf-{n}" for n in range(self.leaves)}
        names |= {self.spine(n): f"spine-{n}" for n in range(self.hosts)}
        devices = {g: Device(g, DeviceKind.SWITCH, name, 64) for g, name in names.items()}
        links = []
        for host in range(self.leaves * self.hosts):
            own = self.adapter(host)
            devices[own] = Device(
                own, DeviceKind.CA, f"node{host} mlx5_0", 1, port_guids=(guid(ADAPTER + 16 * host + 1),)
            )
            leaf, place = divmod(host, self.hosts)
            links.append(Link(PortId(self.leaf(leaf), place + 1), PortId(own, 1), 4, "NDR"))
        for leaf in range(self.leaves):
            for spine in range(self.hosts):
                if (leaf, spine) not in set(self.cut):
                    ends = PortId(self.leaf(leaf), self.hosts + spine + 1), PortId(self.spine(spine), leaf + 1)
                    links.append(Link(*ends, 4, "NDR"))
        return Fabric(devices, tuple(links))

    def tables(self) -> ForwardingTables:
        count = self.leaves * self.hosts
        return ForwardingTables(
            {
                switch: bytes(exits.get(lid, NO_ROUTE) for lid in range(count + 1))
                for switch, exits in self.exits.items()
            },
            {host + 1: guid(ADAPTER + 16 * host + 1) for host in range(count)},
        )
