"""The work orders as the page shows them: what has changed is read again. Thread-safe."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.reporting.work_orders import Planned
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.reports import WorkOrders, for_work_orders, planned_cables, site_work_orders
from clusterctl_web.live_fleet import LiveFleet

_Stamp = tuple[tuple[int, int] | None, ...]


@dataclass
class LiveOrders:
    """Work orders of a site, of thousands of nodes and cables."""

    live: LiveFleet
    _stopped: dict[NodeId, tuple[NodeSummary, NodeState]] = field(default_factory=dict)
    _planned: Planned = field(default_factory=dict)
    _stamp: _Stamp = ()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def current(self) -> WorkOrders:
        """Return the orders of this moment, without the one that its reader has just ticked off."""
        self.live.refresh(at_once=True)
        fleet = self.live.summaries()
        with self._lock:
            stopped = {node.id: self._state(node) for node in fleet if node.stopped_at is not None}
            self._stopped = stopped
            planned = self._cables() if stopped else {}
        return site_work_orders(self.live.context, fleet, [state for _, state in stopped.values()], planned)

    def _state(self, node: NodeSummary) -> tuple[NodeSummary, NodeState]:
        """Return the state of a node; `LiveFleet` has another summary of each node that has changed."""
        kept = self._stopped.get(node.id)
        if kept is not None and kept[0] is node:
            return kept
        return node, for_work_orders(self.live.context.journal.state(node.id))

    def _cables(self) -> Planned:
        """Return the planned cables, read again where a plan's file has changed."""
        stamp = self._stamp_now()
        if stamp != self._stamp:
            self._planned, self._stamp = planned_cables(self.live.context), stamp
        return self._planned

    def _stamp_now(self) -> _Stamp:
        site = self.live.context.site
        fabric = site.settings.fabric
        return tuple(_stamp(Path(site.path(name))) for name in (fabric.plan, fabric.ethernet) if name)


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what differs once a file was written; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
