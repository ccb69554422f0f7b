"""What a node's page has of the journal. What all nodes share is read once for each change. Thread-safe."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from clusterctl.fleet.event import Event, Stream
from clusterctl.fleet.reporting.offenders import Offenders
from clusterctl.fleet.state import NodeState
from clusterctl.operations.explanation import cause_of
from clusterctl.operations.offenders import known_offenders, repeated_among
from clusterctl.operations.operation import current_time
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.live_orders import LiveOrders

T = TypeVar("T")
KEPT_S = 60.0
"""So long the same is returned while no event comes: offences become too old to count without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node as its page shows it.

    cause     what keeps it from going on; empty where nothing does
    repeated  sentences about its own and its parts' earlier failures
    orders    numbers of the work orders about it
    events    oldest first
    """

    state: NodeState
    cause: str
    repeated: Sequence[str]
    orders: Sequence[int]
    events: Sequence[Event]


@dataclass
class _SinceEvent(Generic[T]):
    """A value that is read again once the journal has a newer event."""

    read: Callable[[], T]
    _kept: tuple[int, float, T] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, seq: int) -> T:
        with self._lock:
            if self._kept is None or self._kept[0] < seq or time.monotonic() - self._kept[1] >= KEPT_S:
                self._kept = seq, time.monotonic(), self.read()
            return self._kept[2]


class NodeViews:
    """Reads the nodes of a site for their pages."""

    def __init__(self, live: LiveFleet, orders: LiveOrders) -> None:
        self._live = live
        self._orders = orders
        self._offenders = _SinceEvent(self._read_offenders)
        self._numbers = _SinceEvent(self._read_numbers)

    def of(self, name: str) -> NodeView:
        """Return a node by its name. Raises `UsageError`."""
        live = self._live
        state, seq, fleet = live.node(name), live.refresh(), live.known()
        return NodeView(
            state=state,
            cause=cause_of(state, current_time()),
            repeated=repeated_among(self._offenders.at(seq), state, fleet),
            orders=self._numbers.at(seq).get(state.name, ()) if state.stopped_at is not None else (),
            events=tuple(live.context.journal.history(Stream.NODE, state.id)),
        )

    def _read_offenders(self) -> Offenders:
        return known_offenders(self._live.context, (node.serial for node in self._live.known()))

    def _read_numbers(self) -> Mapping[str, Sequence[int]]:
        """Return the numbers of the work orders by the names of their nodes."""
        found: dict[str, list[int]] = defaultdict(list)
        for order in self._orders.current().orders:
            for node in order.nodes:
                found[node.name].append(order.number)
        return found
