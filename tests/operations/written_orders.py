"""Detached runs that are ordered and never begin: for tests that start no process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.operations import detached
from clusterctl.operations.context import SiteContext, new_run_id
from clusterctl.operations.runs import RunRecord, find


def written_order(context: SiteContext, request: Any, origin: detached.Origin) -> RunRecord:
    """Write the order as `detached.order` does, and start no process."""
    run = new_run_id()
    context.journal.append([NewEvent(Stream.RUN, run, detached.ordered(request, origin, ()))])
    return find(context, run)


@dataclass
class WrittenOrders:
    """Meets `job_watchers.Order`. `runs`: the supervised runs for which a watcher was ordered; `actors`: the users that these act as."""

    runs: list[str] = field(default_factory=list)
    actors: list[str] = field(default_factory=list)

    def __call__(self, context: SiteContext, request: Any, origin: detached.Origin) -> RunRecord:
        found = written_order(context, request, origin)
        self.runs.append(request.run)
        self.actors.append(found.actor)
        return found
