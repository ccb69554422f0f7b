"""The fabric's history in the journal: what came, changed or went with each reading."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.fabric.history import FabricReading, changes, known
from clusterctl.fleet.finding import Evidence
from clusterctl.ports import Journal

_AT_ONCE = 1000
"""Events of one append: the first reading of a large fabric has 130,000, and others write meanwhile."""


class FabricRecord:
    """Writes into the journal's fabric stream; several threads may share one.

    A run that is killed between a reading's events has written some of them; the next reading writes the others.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._lock = threading.Lock()
        self._newest = datetime.min.replace(tzinfo=UTC)

    def write(self, look: FabricReading, evidence: tuple[Evidence, ...]) -> tuple[NewEvent, ...]:
        """Keep the evidence, write the changes and return them. A reading older than the last one is ignored."""
        self._journal.store(evidence)
        taken = max(item.at for item in evidence)
        with self._lock:
            if taken < self._newest:
                return ()
            self._newest = taken
            new = changes(known(self._journal.latest(Stream.FABRIC)), look, tuple(item.digest for item in evidence))
            for start in range(0, len(new), _AT_ONCE):
                self._journal.append(new[start : start + _AT_ONCE])
            return new
