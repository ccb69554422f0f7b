"""The fleet as the page shows it, kept up to date by the journal's events. Thread-safe."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState, NodeSummary, summarise
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time

POLL_S = 1.0
"""The journal is asked for new events at most this often, by all readers of the page together."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One node in its rack. `mark` is its stage, `held` where a step holds it, `on hold` where an operator does."""

    name: str
    place: str
    stage: str
    mark: str
    sku: str
    serial: str
    cause: str
    since: datetime | None

    @property
    def search(self) -> str:
        """What the filter of the page looks in, in lower case."""
        return f"{self.name} {self.place} {self.mark} {self.sku} {self.serial} {self.cause}".lower()


@dataclass(frozen=True, slots=True)
class Rack:
    """A rack with its nodes, the highest unit first; nodes without a place stand in the rack without a name."""

    name: str
    tiles: tuple[Tile, ...]


def tile(node: NodeSummary, now: datetime) -> Tile:
    held = node.held(now)
    mark = (
        "on hold" if held else "held" if node.stopped_at and node.stage is not Stage.QUARANTINED else node.stage.value
    )
    cause = str(node.hold) if held else node.cause
    serial = node.serial or node.expected_serial or ""
    return Tile(node.name, str(node.location), node.stage.value, mark, node.sku, str(serial), cause, node.since)


def racks(nodes: Sequence[NodeSummary], now: datetime) -> tuple[Rack, ...]:
    """Return the racks in natural order of their names."""
    by_rack: dict[str, list[NodeSummary]] = {}
    for node in sorted(nodes, key=lambda node: natural_key(node.name)):
        by_rack.setdefault(node.location.rack, []).append(node)
    for some in by_rack.values():
        some.sort(key=lambda node: -(node.location.unit or 0))
    ordered = sorted(by_rack.items(), key=lambda item: (not item[0], natural_key(item[0])))
    return tuple(Rack(name, tuple(tile(node, now) for node in some)) for name, some in ordered)


@dataclass
class LiveFleet:
    """The nodes of a site. What has changed since an event is read again, and nothing else."""

    context: SiteContext
    _states: dict[str, NodeState] = field(default_factory=dict)
    _seq: int = -1
    _asked: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self) -> int:
        """Read what has changed; return the number of the last event that is known."""
        with self._lock:
            if self._seq < 0 or time.monotonic() - self._asked >= POLL_S:
                last = self.context.journal.health().last_seq
                if last != self._seq:
                    for state in self.context.journal.states(since=max(0, self._seq)):
                        self._states[state.id] = state
                    self._seq = last
                self._asked = time.monotonic()
            return self._seq

    def states(self) -> tuple[NodeState, ...]:
        """Return the nodes of the journal, by name."""
        self.refresh()
        with self._lock:
            return tuple(sorted(self._states.values(), key=lambda state: state.name))

    def node(self, name: str) -> NodeState:
        """Return a node by its name, as the journal has it now. Raises `UsageError`."""
        if name not in {one.name for one in self.context.nodes()}:
            raise UsageError(f"there is no node {name!r}", where=name, remedy="the fleet page lists their names")
        (state,) = self.context.states([name])
        return state

    def evidence(self, name: str, digest: Digest) -> Evidence:
        """Return a piece of evidence of the node's last reports. Raises `UsageError` for another one."""
        state = self.node(name)
        belongs = any(digest in finding.evidence for report in state.reports.values() for finding in report.findings)
        item = self.context.journal.evidence(digest) if belongs else None
        if item is None:
            raise UsageError("the node has no such evidence", where=name, remedy="open it from the node's page")
        return item

    def summaries(self) -> tuple[NodeSummary, ...]:
        """Return the nodes that are not retired: those of the journal, and those that only the site names so far."""
        return self.context.with_unseen(summarise(state) for state in self.states() if state.stage is not Stage.RETIRED)

    def racks(self) -> tuple[Rack, ...]:
        return racks(self.summaries(), current_time())

    def changed(self, since: int) -> tuple[int, Mapping[str, Tile]]:
        """Return the last event's number, and the tiles of nodes with events after `since`, by name."""
        last = self.refresh()
        if last <= since:
            return last, {}
        now = current_time()
        return last, {one.name: tile(one, now) for one in self._summaries_since(since)}

    def _summaries_since(self, since: int) -> Iterator[NodeSummary]:
        newer = {state.name for state in self.states() if state.last_seq > since}
        return (one for one in self.summaries() if one.name in newer)
