"""Supervised runs as the journal has them: which there are, one by its name or a job's id, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.jobs.supervision import Attempt, SupervisedRun, fold
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_manifest import read_manifest


def listed(context: SiteContext) -> tuple[SupervisedRun, ...]:
    """Return all supervised runs, the newest first."""
    ordered = list(context.journal.latest(Stream.JOB, Kind.JOB_RUN_ORDERED))
    found = (fold(context.journal.history(Stream.JOB, event.subject)) for event in ordered)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.at, reverse=True))


def named(context: SiteContext, name: str) -> SupervisedRun:
    """Return a run by its id, the beginning of its id, or the id of one of its jobs. Raises `UsageError`."""
    if name.startswith("run-") and (exact := fold(context.journal.history(Stream.JOB, name))) is not None:
        return exact
    runs = listed(context)
    found = [one for one in runs if name in one.jobs][:1]  # Slurm, installed again, counts again: the newest one
    found = found or [one for one in runs if name and one.id.startswith(name)]
    if len(found) == 1:
        return found[0]
    message = f"{len(found)} runs begin with {name!r}" if found else f"no supervised run has a job {name!r}"
    raise UsageError(message, where="JOBID", remedy="clusterctl job list prints them; job why JOBID explains any job")


def attempt_of(context: SiteContext, name: str) -> tuple[SupervisedRun, Attempt]:
    """Return a run and its attempt: that of the job `name`, else the last. Raises `UsageError`."""
    found = named(context, name)
    chosen = next((one for one in found.attempts if one.job == name), found.last)
    if chosen is None:
        raise UsageError("no attempt was made", where=found.id, remedy=f"clusterctl job watch {found.id}")
    return found, chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A value of two manifests; empty where one lacks it."""

    field: str
    first: str
    second: str


def diff(context: SiteContext, first: str, second: str) -> tuple[Difference, ...]:
    """Return what differs between the manifests of two jobs. Raises `UsageError` where one is not kept."""
    one, other = (dict(_flat("", _manifest(context, name))) for name in (first, second))
    return tuple(
        Difference(field=name, first=one.get(name, ""), second=other.get(name, ""))
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name)
    )


def _manifest(context: SiteContext, name: str) -> Mapping[str, Any]:
    _, attempt = attempt_of(context, name)
    found = read_manifest(context, attempt.manifest)
    if not found:
        raise UsageError("its manifest is not kept", where=name, remedy="compare jobs of clusterctl job run")
    return found


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield each value with its path; a list is one value: its order counts."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _flat(f"{path}.{name}" if path else str(name), part)
    else:
        yield path, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
