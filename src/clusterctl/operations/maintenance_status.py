"""How far plans of rolling changes came, from the journal alone."""

from __future__ import annotations

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.maintenance.progress import Progress, fold
from clusterctl.fleet.payloads.maintenance import MaintenanceMoved, PlanStage
from clusterctl.operations.context import SiteContext
from clusterctl.ports.journal import Journal

ENDED = (PlanStage.DONE, PlanStage.STOPPED)


def read(journal: Journal, plan: str) -> Progress | None:
    """Return how far a plan came; None where it never began."""
    return fold(journal.history(Stream.MAINTENANCE, plan))


def found(context: SiteContext, name: str) -> Progress:
    """Return how far a plan came. Raises `UsageError` where it never began."""
    progress = read(context.journal, name)
    if progress is None:
        raise UsageError("no plan of this name has begun", where=name, remedy="clusterctl maintain status lists them")
    return progress


def every(context: SiteContext) -> tuple[Progress, ...]:
    """Return all plans that have begun, the newest last."""
    names = [event.subject for event in context.journal.latest(Stream.MAINTENANCE, Kind.MAINTENANCE_ORDERED)]
    return tuple(progress for name in names if (progress := read(context.journal, name)) is not None)


def unfinished_notes(context: SiteContext) -> list[str]:
    """Return one line for each plan that is half done; reads little where there is none."""
    begun: dict[str, bool] = {}
    for event in context.journal.latest(Stream.MAINTENANCE):
        begun.setdefault(event.subject, True)
        if isinstance(event.payload, MaintenanceMoved):
            begun[event.subject] = event.payload.to not in ENDED
    plans = [read(context.journal, name) for name, unfinished in begun.items() if unfinished]
    return [f"maintenance: {one.name} is {one.line()}" for one in plans if one is not None and one.stage not in ENDED]
