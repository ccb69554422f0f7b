"""The queue of runs that workers carry out: the journal's orders for a pool that have no end yet."""

from __future__ import annotations

from dataclasses import dataclass, replace

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.payloads.runs import RunEnded, RunOrdered
from clusterctl.fleet.reach import unreached
from clusterctl.operations.runs import claim_on
from clusterctl.ports import Journal

_KINDS = (Kind.RUN_ORDERED, Kind.RUN_ENDED, Kind.RUN_CANCEL_ORDERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRun:
    """An order without an end. `seq`: its age; `needs`: what a worker must reach."""

    name: str
    pool: str
    priority: int
    seq: int
    needs: tuple[str, ...] = ()
    cancelled: bool = False


class WorkQueue:
    """Follows the journal: each `refresh` reads only events since the one before. Not thread-safe."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._seq = 0
        self._open: dict[str, QueuedRun] = {}

    def refresh(self) -> None:
        """Read what has happened since."""
        for event in self._journal.later(_KINDS, self._seq):
            self._add(event)
            self._seq = event.seq

    def _add(self, event: Event) -> None:
        run = event.subject
        match event.payload:
            case RunOrdered(pool=pool, priority=priority, needs=needs) if pool:
                self._open[run] = QueuedRun(name=run, pool=pool, priority=priority, seq=event.seq, needs=needs)
            case RunEnded():
                self._open.pop(run, None)
            case _ if run in self._open:
                self._open[run] = replace(self._open[run], cancelled=True)
            case _:
                pass

    def unfinished(self) -> tuple[QueuedRun, ...]:
        """Return all runs of pools without an end, the highest priority first, then the oldest."""
        return tuple(sorted(self._open.values(), key=lambda run: (-run.priority, run.seq)))

    def cancelled(self, run: str) -> bool:
        """Return whether an operator has asked the run to stop."""
        return run in self._open and self._open[run].cancelled

    def free(self, pool: str, reach: tuple[str, ...]) -> tuple[QueuedRun, ...]:
        """Return the runs of a pool that no live worker has, as far as `reach` allows, in the order of `unfinished`."""
        mine = [run for run in self.unfinished() if run.pool == pool and not unreached(run.needs, reach)]
        taken = {owner.subject for owner in self._journal.owners(claim_on("")) if owner.live} if mine else set()
        return tuple(run for run in mine if claim_on(run.name) not in taken)
