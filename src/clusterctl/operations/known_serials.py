"""Which node of the journal a serial or alias belongs to, for a run that asks for each of its machines."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeSummary
from clusterctl.ports import Journal


@dataclass
class KnownSerials:
    """Called, it returns the nodes' names by serial and alias; retired ones too: a machine comes back by an operator's
    decision only. An alias of several nodes is of an enclosure that they share, and belongs to none: it has no name.

    Reads only nodes with newer events than at the last call, since each call of a large fleet would read all of them;
    of threads that ask at the same time, one reads for all. Thread-safe; a mapping that was returned does not change.
    """

    journal: Journal
    _nodes: dict[NodeId, NodeSummary] = field(default_factory=dict)
    _owners: Mapping[str, str] = field(default_factory=dict)
    _seq: int = 0
    _begun: int = 0
    _done: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self) -> Mapping[str, str]:
        begun = self._begun
        with self._lock:
            if self._done > begun:  # another thread has looked since this one asked
                return self._owners
            self._begun += 1
            last = self.journal.last_seq()
            if last > self._seq:
                self._take(self.journal.summaries(self._seq))
                self._seq = last
            self._done = self._begun
            return self._owners

    def _take(self, changed: tuple[NodeSummary, ...]) -> None:
        new = [node for node in changed if _known_by(node) != _known_by(self._nodes.get(node.id))]
        self._nodes |= {node.id: node for node in changed}
        if new:
            self._owners = _owners(self._nodes)


def _known_by(node: NodeSummary | None) -> tuple[object, ...]:
    return (node.name, node.serial, node.aliases) if node is not None else ()


def _owners(nodes: Mapping[NodeId, NodeSummary]) -> Mapping[str, str]:
    owners: dict[str, str] = {}
    ordered = sorted(nodes.values(), key=lambda node: node.name)
    for node in ordered:
        owners |= {alias: "" if alias in owners else node.name for alias in node.aliases}
    return owners | {node.serial: node.name for node in ordered if node.serial}
