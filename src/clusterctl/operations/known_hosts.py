"""Where each node of the journal is reached, and what its adapters are: read again only where that may have changed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.cabling.names import Hosts
from clusterctl.fleet.event import Kind
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.node import Guid, NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Journal

CHANGING = (
    Kind.NODE_DESCRIBED,
    Kind.NODE_IDENTIFIED,
    Kind.NODE_ADDRESSED,
    Kind.HOST_KEY_PINNED,
    Kind.NODE_ADOPTED,
    Kind.NODE_MERGED,
)
"""The events that change what a `KnownHost` has; a step writes twenty others for each node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """`address`, `host_key`: empty while they are unknown. `guids`: of the adapters that its BMC reports."""

    name: str
    address: str
    host_key: str
    rack: str
    sku: str
    guids: tuple[Guid, ...]

    @classmethod
    def of(cls, node: NodeState) -> KnownHost:
        adapters = (node.inventory.hcas or ()) if node.inventory is not None else ()
        return cls(
            name=node.name,
            address=node.address,
            host_key=node.host_key,
            rack=node.location.rack,
            sku=node.sku,
            guids=tuple(one.guid for one in adapters if one.guid),
        )


@dataclass
class KnownHosts:
    """Called, it returns the hosts of all nodes by name. Thread-safe; a mapping that was returned does not change.

    The first call reads each node, the next ones only the nodes with an event of `CHANGING` since: each play of a
    large run asks.
    """

    journal: Journal
    _nodes: dict[NodeId, KnownHost] = field(default_factory=dict)
    _seq: int = -1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> Mapping[str, KnownHost]:
        with self._lock:
            last = self.journal.last_seq()
            if self._seq < 0:
                self._nodes = {node.id: KnownHost.of(node) for node in self.journal.each_state()}
            elif changed := self.journal.changed(CHANGING, self._seq):
                states = self.journal.states_of(changed)
                self._nodes |= {node: KnownHost.of(state) for node, state in states.items()}
            self._seq = last
            return {host.name: host for host in self._nodes.values()}

    def adapters(self) -> Hosts:
        """Return the owner of each adapter that a BMC has reported, by GUID."""
        return {guid: PortName(host.name, "") for host in self().values() for guid in host.guids}
