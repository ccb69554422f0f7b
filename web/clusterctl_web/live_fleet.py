"""The fleet as the page shows it, kept up to date by the journal's events. Thread-safe."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState, NodeSummary, summarise
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time
from clusterctl.ports import Journal

DRAWN_S = 10.0
"""So long the same racks are drawn while no event comes: a hold ends without one."""
POLL_S = 1.0
"""The journal is asked for new events at most this often, by all readers of the page together."""


@dataclass(frozen=True, slots=True)
class Tile:
    """One node in its rack. `mark` is its stage, `held` where a step holds it, `on hold` where an operator does."""

    name: str
    place: str
    unit: int | None
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
    at = node.location
    return Tile(node.name, str(at), at.unit, node.stage.value, mark, node.sku, str(serial), cause, node.since)


def racks(nodes: Sequence[NodeSummary], now: datetime) -> tuple[Rack, ...]:
    """Return the racks in natural order of their names."""
    by_rack: dict[str, list[NodeSummary]] = {}
    for node in sorted(nodes, key=lambda node: natural_key(node.name)):
        by_rack.setdefault(node.location.rack, []).append(node)
    for some in by_rack.values():
        some.sort(key=lambda node: -(node.location.unit or 0))
    ordered = sorted(by_rack.items(), key=lambda item: (not item[0], natural_key(item[0])))
    return tuple(Rack(name, tuple(tile(node, now) for node in some)) for name, some in ordered)


@dataclass(frozen=True, slots=True)
class _Known:
    """A node, and the number of its last event; of the last one of all, where it was not read since the start."""

    summary: NodeSummary
    last_seq: int


@dataclass
class LiveFleet:
    """The nodes of a site, each as a summary. What has changed since an event is read again, and nothing else.

    reading  the same site with a journal that may be some moments behind; None: `context` is read
    """

    context: SiteContext
    reading: SiteContext | None = None
    _known: dict[str, _Known] = field(default_factory=dict)
    _seq: int = -1
    _asked: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _drawn: tuple[int, float, tuple[Rack, ...]] = (-1, 0.0, ())
    _drawing: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, *, at_once: bool = False) -> int:
        """Read what has changed; return the number of the last event that is known.

        at_once: ask the journal now, for a page that must show what its reader has just ordered.
        """
        with self._lock:
            if at_once or self._seq < 0 or time.monotonic() - self._asked >= POLL_S:
                journal = self.context.journal if at_once else self._journal
                last = journal.health().last_seq
                if last != self._seq:
                    self._read(journal, last)
                    self._seq = last
                self._asked = time.monotonic()
            return self._seq

    @property
    def _journal(self) -> Journal:
        return (self.reading or self.context).journal

    def _read(self, journal: Journal, last: int) -> None:
        """Read the summaries of all nodes at first, and later the nodes that have changed: whole states take memory."""
        if self._seq < 0:
            self._known = {one.id: _Known(one, last) for one in journal.summaries()}
            return
        for state in journal.states(since=self._seq):
            self._known[state.id] = _Known(summarise(state), state.last_seq)

    def node(self, name: str) -> NodeState:
        """Return a node by its name, as the journal has it now. Raises `UsageError`."""
        self.refresh()
        with self._lock:
            found = next((one.summary.id for one in self._known.values() if one.summary.name == name), None)
        if found is not None:
            return self._journal.state(found)
        if any(node.name == name for node in self.context.site.nodes):
            return self.context.unseen(name)
        raise UsageError(f"there is no node {name!r}", where=name, remedy="the fleet page lists their names")

    def evidence(self, name: str, digest: Digest) -> Evidence:
        """Return a piece of evidence of the node's last reports. Raises `UsageError` for another one."""
        state = self.node(name)
        belongs = any(digest in finding.evidence for report in state.reports.values() for finding in report.findings)
        item = self._journal.evidence(digest) if belongs else None
        if belongs and item is None:
            remedy = "read the report instead"
            raise UsageError("the raw output of this evidence is no longer kept", where=name, remedy=remedy)
        if item is None:
            raise UsageError("the node has no such evidence", where=name, remedy="open it from the node's page")
        return item

    def summaries(self) -> tuple[NodeSummary, ...]:
        """Return the nodes that are not retired: those of the journal, and those that only the site names so far."""
        self.refresh()
        with self._lock:
            known = [one.summary for one in self._known.values()]
        return self.context.with_unseen(node for node in known if node.stage is not Stage.RETIRED)

    def known(self) -> tuple[NodeSummary, ...]:
        """Return the nodes of the journal, also those that are retired."""
        self.refresh()
        with self._lock:
            return tuple(one.summary for one in self._known.values())

    def racks(self) -> tuple[Rack, ...]:
        """Return the racks with their nodes: the same object for all readers, until something changes."""
        seq = self.refresh()
        with self._drawing:
            drawn, at, found = self._drawn
            if drawn < seq or time.monotonic() - at >= DRAWN_S:
                at, found = time.monotonic(), racks(self.summaries(), current_time())
                self._drawn = seq, at, found
            return found

    def changed(self, since: int) -> tuple[int, Mapping[str, Tile]]:
        """Return the last event's number, and the tiles of nodes with events after `since`, by name."""
        last = self.refresh()
        if last <= since:
            return last, {}
        with self._lock:
            newer = [one.summary for one in self._known.values() if one.last_seq > since]
        now = current_time()
        return last, {node.name: tile(node, now) for node in newer if node.stage is not Stage.RETIRED}
